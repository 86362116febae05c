// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/depthwise/depthwise.h"
#include "kernels/cpu/depthwise/strips.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace depthwise;

class Depthwise final : public Kernel {
 public:
  Depthwise(const DepthwiseParams& params, Epilogue epilogue)
      : shape_(params.shape), config_(params.config), packed_(params.packed), epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int) const override {
    return packed_ ? 0 : static_cast<size_t>(packed_floats(shape_)) * sizeof(float);
  }
  void run(const Launch& launch) const override;

 private:
  Shape shape_;
  DepthwiseConfig config_;
  bool packed_;
  Epilogue epilogue_;
};

Result<> Depthwise::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed,
                "depthwise has {} inputs and {} outputs; it takes x, weights and gives one output", inputs.size(),
                outputs.size());
  const TensorArg &x = inputs[0], &weights = inputs[1], &out = outputs[0];
  for (const TensorArg* tensor : {&x, &weights, &out})
    if (tensor->dtype != DType::f32)
      return fail(ErrorCode::type_mismatch, "depthwise computes in f32, a tensor is {}", name_of(tensor->dtype));
  const int rank = 2 + shape_.spatial;
  const bool fits = x.rank == rank && out.rank == rank && x.dims[0] == out.dims[0] && x.dims[1] == shape_.channels &&
                    out.dims[1] == shape_.channels &&
                    (shape_.channels == 1 || (x.strides[1] == 1 && out.strides[1] == 1));
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "depthwise: x and the output must have {} contiguous channels",
                shape_.channels);
  bool holds = packed_ ? weights.rank == 1 && weights.dims[0] >= packed_floats(shape_)
                       : weights.rank == rank && weights.dims[0] == shape_.channels && weights.dims[1] == 1;
  for (int d = 0; !packed_ && holds && d < shape_.spatial; ++d)
    holds = weights.dims[2 + d] == shape_.kernel[3 - shape_.spatial + d];
  if (!holds) return fail(ErrorCode::shape_mismatch, "depthwise: the weights do not fit {} channels", shape_.channels);
  return check_epilogue(epilogue_, inputs.subspan(2), out);
}

void Depthwise::run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  if (out.volume() == 0) return;
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, launch.inputs.subspan(2), out, 1);
  const float* weights = launch.inputs[1].as<float>();
  if (!packed_) {
    const TensorArg& w = launch.inputs[1];
    std::array<int64_t, 3> tap_strides{};
    for (int d = 0; d < shape_.spatial; ++d) tap_strides[3 - shape_.spatial + d] = w.strides[2 + d];
    auto* packed = reinterpret_cast<float*>(launch.workspace);
    pack_weights(shape_, weights, w.strides[0], tap_strides, {packed, static_cast<size_t>(packed_floats(shape_))});
    weights = packed;
  }
  static const auto function = LATHE_ISA_SELECT(depthwise_strip);
  Strip strip{};
  strip.weights = weights;
  strip.weight_stride = padded_channels(shape_);
  strip.epilogue = &epilogue;
  Strips(shape_, config_, launch, epilogue).run(strip, function, launch.pool);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_depthwise(const Record& record) {
  const auto params = decode_counts<DepthwiseParams>(record.params);
  if (!params || !is_valid(params->shape, params->config)) return refuse_params("depthwise");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  return std::unique_ptr<Kernel>(new Depthwise(*params, std::move(epilogue)));
}

}  // namespace lathe::cpu
