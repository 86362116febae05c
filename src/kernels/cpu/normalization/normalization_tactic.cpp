// SPDX-License-Identifier: Apache-2.0
// Layer, RMS, instance and group normalization: kernel "normalization".
#include "device/cpu/kernel.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/normalization/normalization.h"

namespace lathe::cpu {
namespace {

struct Kind {
  bool subtract_mean = true;
  uint32_t axes = 0;  // of the view with the groups as a dimension
  double epsilon = 0;
  bool by_channel = false;  // scale and bias have one value for each channel
  int64_t groups = 1;
};

uint32_t bits_from(int axis, int rank) { return ((1u << rank) - 1) & ~((1u << std::max(axis, 0)) - 1); }

std::optional<Kind> kind_of(const Problem& problem) {
  if (!problem.attributes) return std::nullopt;
  const Operand& x = problem.inputs[0];
  const auto from_axis = [&](int64_t axis) { return bits_from(axis_from_start(axis, x), x.rank()); };
  switch (problem.attributes->kind()) {
    case OpKind::layer_normalization: {
      const auto& attrs = problem.attrs<LayerNormalizationAttrs>();
      return Kind{.axes = from_axis(attrs.axis), .epsilon = attrs.epsilon};
    }
    case OpKind::rms_normalization: {
      const auto& attrs = problem.attrs<RmsNormalizationAttrs>();
      return Kind{.subtract_mean = false, .axes = from_axis(attrs.axis), .epsilon = attrs.epsilon};
    }
    case OpKind::instance_normalization:
      return Kind{.axes = bits_from(2, x.rank()),
                  .epsilon = problem.attrs<InstanceNormalizationAttrs>().epsilon,
                  .by_channel = true};
    case OpKind::group_normalization: {
      const auto& attrs = problem.attrs<GroupNormalizationAttrs>();
      const bool several = attrs.groups > 1;
      return Kind{.axes = bits_from(several ? 2 : 1, x.rank() + several),
                  .epsilon = attrs.epsilon,
                  .by_channel = true,
                  .groups = attrs.groups};
    }
    default:
      return std::nullopt;
  }
}

// One value for each channel, in a shape that broadcasts to N C spatial...
Result<Tensor> channel_column(const Tensor& values, int rank) {
  Dims dims(static_cast<size_t>(rank) - 1, 1);
  dims[0] = values.volume();
  LATHE_ASSIGN(Tensor column, Tensor::allocate(DType::f32, dims));
  std::copy_n(values.as<float>(), values.volume(), column.mutable_as<float>());
  return column;
}

Result<Emission> emit_by_channel(const Problem& problem, const NormalizationParams& params) {
  Emission emission = emission_of(problem, params, {0});
  for (const size_t i : {1, 2}) {
    if (i == 1 ? !params.has_scale : !params.has_bias) continue;
    LATHE_ASSIGN(Tensor column, channel_column(*problem.inputs[i].constant, problem.inputs[0].rank()));
    emission.packed.push_back(std::move(column));
    emission.inputs.insert(emission.inputs.begin() + static_cast<ptrdiff_t>(emission.packed.size()),
                           {StepInput::packed, emission.packed.size() - 1});
  }
  return emission;
}

Matched match_normalization(const Problem& problem) {
  const std::optional<Kind> kind = kind_of(problem);
  if (!kind) return refuse("not a normalization");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b1})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const int rank = problem.inputs[0].rank();
  if (rank == 0) return refuse("a scalar");
  if (rank + (kind->groups > 1) > kMaxRank) return refuse("too many dimensions");
  const NormalizationParams params{kind->subtract_mean,  kind->axes,           static_cast<float>(kind->epsilon),
                                   problem.has_input(1), problem.has_input(2), kind->groups};
  if (!kind->by_channel) {
    std::vector<size_t> inputs = {0};
    for (const size_t i : {1, 2})
      if (problem.has_input(i)) inputs.push_back(i);
    return match_one(emission_of(problem, params, inputs), predicted_us(problem, {.vectors = 16}));
  }
  for (size_t i = 1; i < problem.inputs.size(); ++i)
    if (!problem.inputs[i].constant) return refuse("scale or bias is not constant");
  return match_later([&problem, params] { return emit_by_channel(problem, params); },
                     predicted_us(problem, {.vectors = 16}));
}

}  // namespace

const Tactic& normalization_tactic() {
  static const FunctionTactic tactic("normalization", match_normalization);
  return tactic;
}

}  // namespace lathe::cpu
