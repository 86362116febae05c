// SPDX-License-Identifier: Apache-2.0
// Einsums of one or two operands, and matrix products of types other than f32: kernel "contraction".
#include <algorithm>

#include "kernels/cpu/contraction/contraction.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "ops/subscripts.h"

namespace lathe::cpu {
namespace {

// Of operands and result, with a label for each dimension.
using Labels = std::vector<std::vector<Label>>;

constexpr Label kRow = 1, kColumn = 2, kSummed = 3;  // of a matrix product

Labels labels_of_matmul(const Problem& problem) {
  const auto& attrs = problem.attrs<MatmulAttrs>();
  // Batch dimensions are aligned at the last: their labels count from there.
  const auto batch = [](int rank) {
    std::vector<Label> labels;
    for (int d = rank - 2; d-- > 0;) labels.push_back(kEllipsis + d);
    return labels;
  };
  Labels labels = {batch(problem.inputs[0].rank()), batch(problem.inputs[1].rank())};
  std::vector<Label> result = labels[0].size() > labels[1].size() ? labels[0] : labels[1];
  const auto add = [](std::vector<Label>& to, Label row, Label column, bool transposed, bool is_vector) {
    if (is_vector)
      to.push_back(kSummed);
    else
      to.insert(to.end(), {transposed ? column : row, transposed ? row : column});
  };
  const bool left_vector = problem.inputs[0].rank() == 1, right_vector = problem.inputs[1].rank() == 1;
  add(labels[0], kRow, kSummed, attrs.transpose_a, left_vector);
  add(labels[1], kSummed, kColumn, attrs.transpose_b, right_vector);
  if (!left_vector) result.push_back(kRow);
  if (!right_vector) result.push_back(kColumn);
  labels.push_back(std::move(result));
  return labels;
}

// Nothing where an einsum has more operands than the kernel.
std::optional<Labels> labels_of(const Problem& problem) {
  if (problem.is(OpKind::matmul)) return labels_of_matmul(problem);
  std::vector<int64_t> ranks;
  for (const Operand& input : problem.inputs) ranks.push_back(input.rank());
  const Result<Subscripts> subscripts = parse_subscripts(problem.attrs<EinsumAttrs>().equation, ranks);
  if (!subscripts || ranks.size() > 2) return std::nullopt;
  Labels labels = subscripts->operands;
  labels.resize(2);  // a second operand without dimensions
  labels.push_back(subscripts->output);
  return labels;
}

contraction::ContractionParams params_of(const Labels& labels) {
  std::vector<Label> axes;
  for (const std::vector<Label>& own : {labels[2], labels[0], labels[1]})
    for (const Label label : own)
      if (std::find(axes.begin(), axes.end(), label) == axes.end()) axes.push_back(label);
  contraction::ContractionParams params;
  for (const Label label : axes) {
    contraction::ContractionAxis axis;
    for (size_t t = 0; t < labels.size(); ++t)
      for (size_t d = 0; d < labels[t].size(); ++d)
        if (labels[t][d] == label) axis.dims[t] |= 1u << d;
    params.axes.push_back(axis);
  }
  return params;
}

// A product of one operand is that by 1.
Result<Emission> emit_by_one(const Problem& problem, const contraction::ContractionParams& params) {
  LATHE_ASSIGN(Tensor one, Tensor::allocate(problem.inputs[0].dtype, {}));
  dispatch(one.dtype(), [&](auto zero) { *one.mutable_as<decltype(zero)>() = decltype(zero)(1); });
  return emission_with_weights(problem, encode_params(params), std::move(one));
}

}  // namespace

Matched match_contraction(const Problem& problem) {
  if (!problem.is(OpKind::matmul) && !problem.is(OpKind::einsum)) return refuse("no sum of products");
  const DType type = problem.outputs[0].dtype;
  if (problem.is(OpKind::matmul) && type == DType::f32)
    return refuse("matrix products of f32 have a kernel of their own");
  if (!contraction::is_supported(problem.inputs[0].dtype, problem.inputs.back().dtype, type))
    return refuse(fmt::format("it makes {} of {}", name_of(type), name_of(problem.inputs[0].dtype)));
  if (auto reason = unsupported_feature(problem, {.mixed_factors = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_epilogue(problem)) return refuse(*std::move(reason));
  const std::optional<Labels> labels = labels_of(problem);
  if (!labels) return refuse("more than two operands");
  const contraction::ContractionParams params = params_of(*labels);
  if (params.axes.size() > contraction::kMaxAxes) return refuse("more axes than the kernel takes");
  const double us = predicted_us(problem, {.vectors = 2, .passes = 2});
  if (problem.inputs.size() == 2) return match_one(emission_of(problem, params, {0, 1}), us);
  return match_later([&problem, params] { return emit_by_one(problem, params); }, us);
}

}  // namespace lathe::cpu
