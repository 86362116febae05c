// SPDX-License-Identifier: Apache-2.0
// Layer, RMS, instance, group and p-norm normalisation.
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/normalization/normalization.h"
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {
namespace {

// What a row is, and what becomes of it.
struct Kind {
  std::vector<size_t> reduced;  // dims of x
  int64_t groups = 0;           // dim 1 is split into as many, when not 0
  std::string statistic, members;
  uint32_t state_bytes = 4;
  bool by_channel = false;  // scale and bias have one value for each channel
};

std::string literal(double value) { return fmt::format("{:a}f", static_cast<float>(value)); }

std::vector<size_t> dims_from(int64_t axis, int rank) {
  std::vector<size_t> dims;
  for (int64_t d = axis < 0 ? axis + rank : axis; d < rank; ++d) dims.push_back(static_cast<size_t>(d));
  return dims;
}

std::optional<Kind> kind_of(const Problem& problem) {
  if (!problem.attributes) return std::nullopt;
  const int rank = problem.inputs[0].rank();
  if (problem.is(OpKind::layer_normalization)) {
    const auto& attrs = problem.attrs<LayerNormalizationAttrs>();
    return Kind{dims_from(attrs.axis, rank), 0, "Moments", literal(attrs.epsilon), 12};
  }
  if (problem.is(OpKind::rms_normalization)) {
    const auto& attrs = problem.attrs<RmsNormalizationAttrs>();
    return Kind{dims_from(attrs.axis, rank), 0, "MeanSquare", literal(attrs.epsilon)};
  }
  if (problem.is(OpKind::instance_normalization)) {
    const auto& attrs = problem.attrs<InstanceNormalizationAttrs>();
    return Kind{dims_from(2, rank), 0, "Moments", literal(attrs.epsilon), 12, true};
  }
  if (problem.is(OpKind::group_normalization)) {
    const auto& attrs = problem.attrs<GroupNormalizationAttrs>();
    return Kind{dims_from(2, rank), attrs.groups, "Moments", literal(attrs.epsilon), 12, true};
  }
  if (problem.is(OpKind::lp_normalization)) {
    const auto& attrs = problem.attrs<LpNormalizationAttrs>();
    const int64_t axis = attrs.axis < 0 ? attrs.axis + rank : attrs.axis;
    return Kind{{static_cast<size_t>(axis)}, 0, fmt::format("Norm<{}>", attrs.p), ""};
  }
  return std::nullopt;
}

// One value for each channel as a tensor that broadcasts to [N, C, ...].
Operand channel_column(Operand operand, int rank) {
  for (int i = 2; i < rank; ++i) {
    operand.dims.push_back(1);
    operand.opt_dims.push_back(1);
    operand.strides.push_back(0);
    operand.opt_strides.push_back(0);
  }
  return operand;
}

Normalization normalization_of(const Problem& problem, const Kind& kind) {
  const int rank = problem.inputs[0].rank();
  Normalization normalization{IndexSpace(problem.inputs[0]), kind.statistic,      kind.members, kind.state_bytes,
                              problem.has_input(1),          problem.has_input(2)};
  IndexSpace& space = normalization.space;
  space.add(problem.outputs[0]);
  for (const size_t i : {1, 2})
    if (problem.has_input(i)) space.add(kind.by_channel ? channel_column(problem.inputs[i], rank) : problem.inputs[i]);
  for (const Operand& operand : problem.operands) space.add(operand);
  add_prologue_operands(problem, space);
  for (const size_t dim : kind.reduced) space.reduce(dim);
  if (kind.groups) space.split(1, kind.groups);
  space.simplify();
  return normalization;
}

}  // namespace

Matched match_normalization(const Problem& problem) {
  const std::optional<Kind> kind = kind_of(problem);
  if (!kind) return refuse("not a normalization");
  if (auto reason = refuse_row_problem(problem)) return refuse(*std::move(reason));
  if (auto reason = refuse_types(problem)) return refuse(*std::move(reason));
  std::vector<StepInput> inputs{{StepInput::input, 0}};
  for (const size_t i : {1, 2})
    if (problem.has_input(i)) inputs.push_back({StepInput::input, i});
  return match_rows(problem, normalization_of(problem, *kind), std::move(inputs));
}

}  // namespace lathe::cuda
