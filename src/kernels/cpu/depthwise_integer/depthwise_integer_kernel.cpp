// SPDX-License-Identifier: Apache-2.0
#include <climits>
#include <cstring>

#include "base/divide.h"
#include "kernels/cpu/depthwise/strips.h"
#include "kernels/cpu/depthwise_integer/depthwise_integer.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace depthwise;

class DepthwiseInteger final : public Kernel {
 public:
  DepthwiseInteger(const DepthwiseIntegerParams& params, gemm::IntegerProgram program)
      : shape_(params.shape), config_(params.config), program_(std::move(program)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int) const override {
    return outside_bytes() + epilogue_bytes() + static_cast<size_t>(ordered_integers(shape_)) * sizeof(int32_t);
  }
  void run(const Launch& launch) const override;

 private:
  size_t outside_bytes() const { return static_cast<size_t>(round_up<int64_t>(shape_.channels, 64)); }

  size_t epilogue_bytes() const { return gemm::integer_scratch_bytes(shape_.channels, program_.operand_types.size()); }

  Shape shape_;
  DepthwiseConfig config_;
  gemm::IntegerProgram program_;
};

Result<> DepthwiseInteger::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed,
                "depthwise_integer has {} inputs and {} outputs; it takes x, weights and gives one output",
                inputs.size(), outputs.size());
  const TensorArg &x = inputs[0], &weights = inputs[1], &out = outputs[0];
  if (!is_byte_integer(x.dtype) || weights.dtype != DType::i32)
    return fail(ErrorCode::type_mismatch, "depthwise_integer multiplies 8-bit integers, x is {} and the weights {}",
                name_of(x.dtype), name_of(weights.dtype));
  const int rank = 2 + shape_.spatial;
  const bool fits = x.rank == rank && out.rank == rank && x.dims[0] == out.dims[0] && x.dims[1] == shape_.channels &&
                    out.dims[1] == shape_.channels &&
                    (shape_.channels == 1 || (x.strides[1] == 1 && out.strides[1] == 1)) && weights.rank == 1 &&
                    weights.dims[0] >= packed_integers(shape_);
  if (!fits)
    return fail(ErrorCode::shape_mismatch,
                "depthwise_integer: x, weights and the output do not fit {} contiguous channels", shape_.channels);
  return gemm::check_integer_epilogue(program_, inputs.subspan(2), out, 1);
}

void DepthwiseInteger::run(const Launch& launch) const {
  static const auto function = LATHE_ISA_SELECT(depthwise_integer_strip)(multiplies_bytes());
  const TensorArg& out = launch.outputs[0];
  if (out.volume() == 0) return;
  std::memset(launch.workspace, 0, outside_bytes());
  const auto* packed = launch.inputs[1].as<int32_t>();
  const int32_t* flipped = launch.inputs[0].dtype == DType::i8 ? packed + packed_fours(shape_) : nullptr;
  const gemm::IntegerEpilogue epilogue = gemm::bind_integer_epilogue(program_, launch.inputs.subspan(2), out, 1,
                                                                     flipped, launch.workspace + outside_bytes());
  Strip strip{};
  strip.weights = reinterpret_cast<const float*>(packed);
  strip.weight_stride = padded_channels(shape_);
  strip.integers = &epilogue;
  strip.outside = launch.workspace;
  DepthwiseConfig config = config_;
  if (has_order(shape_)) {
    auto* ordered = reinterpret_cast<int32_t*>(launch.workspace + outside_bytes() + epilogue_bytes());
    LATHE_ISA_SELECT(order_channels)(strip, shape_.channels, ordered);
    strip.ordered = ordered;
    strip.makes_levels = epilogue.folded.offset && epilogue.residual < 0 && !epilogue.has_between && epilogue.term < 0;
    if (strip.makes_levels) config.pixels = INT_MAX;
  }
  Strips(shape_, config, launch, epilogue.middle).run(strip, function, launch.pool);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_depthwise_integer(const Record& record) {
  const auto params = decode_counts<DepthwiseIntegerParams>(record.params);
  if (!params || !is_valid(params->shape, params->config)) return refuse_params("depthwise_integer");
  LATHE_ASSIGN(gemm::IntegerProgram program, gemm::compile_integer_epilogue(record.program, params->types));
  return std::unique_ptr<Kernel>(new DepthwiseInteger(*params, std::move(program)));
}

}  // namespace lathe::cpu
