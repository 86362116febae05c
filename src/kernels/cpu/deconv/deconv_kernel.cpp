// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/conv/direct.h"
#include "kernels/cpu/deconv/deconv.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace deconv;

// The tensors of one phase: views of the launch's.
struct PhaseTensors {
  std::array<TensorArg, 2 + kMaxEpilogueOperands> inputs;
  size_t count = 0;
  TensorArg output;
  std::span<const TensorArg> input_span() const { return {inputs.data(), count}; }
  std::span<const TensorArg> output_span() const { return {&output, 1}; }
};

class Deconv final : public Kernel {
 public:
  Deconv(const DeconvParams& params, Epilogue epilogue)
      : shape_(params.shape),
        packed_(params.packed),
        epilogue_(std::move(epilogue)),
        floats_(packed_floats(params.shape, params.blocking)) {
    const conv::ConvConfig config{conv::Algorithm::direct, params.blocking, false};
    int64_t weights = 0;
    for (int64_t i = 0; i < phase_count(shape_); ++i) {
      const DeconvPhase phase = phase_of(shape_, i);
      phases_.push_back({phase, weights, conv::packed_floats(phase.shape, config),
                         conv::make_direct({phase.shape, config, packed_}, epilogue_)});
      weights += phases_.back().floats;
    }
  }

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    size_t most = 0;
    PhaseTensors tensors;
    for (const Part& part : phases_)
      if (view(part, inputs, outputs[0], tensors))
        most = std::max(most, part.kernel->workspace_bytes(tensors.input_span(), tensors.output_span(), threads));
    return most;
  }
  void run(const Launch& launch) const override {
    PhaseTensors tensors;
    for (const Part& part : phases_)
      if (view(part, launch.inputs, launch.outputs[0], tensors))
        part.kernel->run({tensors.input_span(), tensors.output_span(), launch.workspace, launch.pool});
  }

 private:
  struct Part {
    DeconvPhase phase;
    int64_t weights, floats;
    std::unique_ptr<Kernel> kernel;
  };
  TensorArg weights_of(const Part& part, const TensorArg& weights) const;
  void narrow(const Part& part, const TensorArg& out, TensorArg& tensor) const;
  bool view(const Part& part, std::span<const TensorArg> inputs, const TensorArg& out, PhaseTensors& tensors) const;

  ConvShape shape_;
  bool packed_;
  Epilogue epilogue_;
  int64_t floats_;
  std::vector<Part> phases_;
};

// Every stride-th pixel of a tensor that broadcasts to the output.
void Deconv::narrow(const Part& part, const TensorArg& out, TensorArg& tensor) const {
  const int missing = 3 - shape_.spatial;
  for (int d = missing; d < 3; ++d) {
    const int dim = 2 + d - missing;
    if (tensor.dims[dim] != out.dims[dim]) continue;  // broadcast
    if (tensor.data) tensor.data = tensor.as<float>() + part.phase.offset[d] * tensor.strides[dim];
    tensor.strides[dim] *= shape_.stride[d];
    tensor.dims[dim] = (tensor.dims[dim] - part.phase.offset[d] + shape_.stride[d] - 1) / shape_.stride[d];
  }
}

// A phase's weights as a convolution's. Its taps are every tap_step-th one, backwards; one without taps sees a zero.
TensorArg Deconv::weights_of(const Part& part, const TensorArg& weights) const {
  static float zero = 0;
  TensorArg own = weights;
  if (packed_) {
    if (own.data) own.data = weights.as<float>() + part.weights;
    own.dims[0] = part.floats;
    return own;
  }
  const DeconvPhase& phase = part.phase;
  std::swap(own.dims[0], own.dims[1]);
  std::swap(own.strides[0], own.strides[1]);
  int64_t first = 0;
  for (int d = 0; d < shape_.spatial; ++d) {
    const int axis = 3 - shape_.spatial + d;
    own.dims[2 + d] = phase.shape.kernel[axis];
    own.strides[2 + d] = -phase.tap_step[axis] * weights.strides[2 + d];
    first += (phase.first_tap[axis] + (own.dims[2 + d] - 1) * phase.tap_step[axis]) * weights.strides[2 + d];
  }
  if (phase.empty) std::fill_n(own.strides, own.rank, 0);
  if (own.data) own.data = phase.empty ? &zero : weights.as<float>() + first;
  return own;
}

// False when the phase has no output pixel.
bool Deconv::view(const Part& part, std::span<const TensorArg> inputs, const TensorArg& out,
                  PhaseTensors& tensors) const {
  const int missing = 3 - shape_.spatial;
  for (int d = missing; d < 3; ++d)
    if (part.phase.offset[d] >= out.dims[2 + d - missing]) return false;
  tensors.count = inputs.size();
  std::copy(inputs.begin(), inputs.end(), tensors.inputs.begin());
  tensors.inputs[1] = weights_of(part, inputs[1]);
  for (size_t i = 2; i < inputs.size(); ++i) narrow(part, out, tensors.inputs[i]);
  tensors.output = out;
  narrow(part, out, tensors.output);
  return true;
}

Result<> Deconv::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed,
                "deconv has {} inputs and {} outputs; it takes x, weights and gives one output", inputs.size(),
                outputs.size());
  const TensorArg &weights = inputs[1], &out = outputs[0];
  bool fits = out.rank == 2 + shape_.spatial;
  if (packed_)
    fits = fits && weights.rank == 1 && weights.dims[0] >= floats_;
  else
    fits = fits && weights.rank == out.rank && weights.dims[0] == shape_.in_channels &&
           weights.dims[1] == shape_.out_channels;
  for (int d = 0; !packed_ && fits && d < shape_.spatial; ++d)
    fits = weights.dims[2 + d] == shape_.kernel[3 - shape_.spatial + d];
  if (!fits) return fail(ErrorCode::shape_mismatch, "deconv: the output's rank or the weights do not fit");
  LATHE_TRY(check_epilogue(epilogue_, inputs.subspan(2), out));
  PhaseTensors tensors;
  for (const Part& part : phases_)
    if (view(part, inputs, out, tensors)) LATHE_TRY(part.kernel->check(tensors.input_span(), tensors.output_span()));
  return {};
}

bool valid(const ConvShape& shape, const gemm::Blocking& blocking) {
  constexpr int64_t kMaxVolume = 1 << 16;
  constexpr double kMaxWeights = 1e11;
  return gemm::valid(blocking) && conv::is_valid_window(shape, kMaxVolume) &&
         shape.padding_rule == PaddingRule::given && shape.groups >= 1 && shape.in_channels >= 1 &&
         shape.out_channels >= 1 && shape.in_channels % shape.groups == 0 && shape.out_channels % shape.groups == 0 &&
         *std::max_element(shape.stride.begin(), shape.stride.end()) <= kMaxPhases &&
         shape.stride[0] * shape.stride[1] <= kMaxPhases && phase_count(shape) <= kMaxPhases &&
         static_cast<double>(shape.volume() + phase_count(shape)) * static_cast<double>(shape.group_inputs()) *
                 static_cast<double>(shape.out_channels + 16 * shape.groups) <=
             kMaxWeights;
}

// As decode_counts(), but padding may be negative.
std::optional<DeconvParams> decode(std::span<const int64_t> list) {
  const std::optional<DeconvParams> params = decode_params<DeconvParams>(list);
  if (!params) return std::nullopt;
  DeconvParams counts = *params;
  for (int64_t& pad : counts.shape.pad) pad = std::abs(std::max<int64_t>(pad, -INT32_MAX - int64_t{1}));
  return decode_counts<DeconvParams>(encode_params(counts)) ? params : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_deconv(const Record& record) {
  const auto params = decode(record.params);
  if (!params || !valid(params->shape, params->blocking) || (!params->packed && params->shape.groups != 1))
    return refuse_params("deconv");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  return std::unique_ptr<Kernel>(new Deconv(*params, std::move(epilogue)));
}

}  // namespace lathe::cpu
