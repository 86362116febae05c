// SPDX-License-Identifier: Apache-2.0
// Layer, RMS, instance, group and p-norm normalisation.
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/normalization/normalization.h"
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {
namespace {

std::string hexadecimal(float value) { return fmt::format("{:a}f", value); }

// One value for each channel as a tensor that broadcasts to [N, C, ...].
Operand channel_column(Operand operand, int rank) {
  for (int i = 2; i < rank; ++i) operand.append_dim({});
  return operand;
}

// x over its p-norm along an axis.
Normalization p_norm_of(const Problem& problem) {
  const auto& attrs = problem.attrs<LpNormalizationAttrs>();
  return normalization_along(problem, attrs.axis, {fmt::format("Norm<{}>", attrs.p), "", 4});
}

}  // namespace

Normalization normalization_of(const Problem& problem, const RowNormalization& rows) {
  const Operand& x = problem.inputs[0];
  Normalization normalization{IndexSpace(x), statistic_of(rows), problem.has_input(1), problem.has_input(2)};
  IndexSpace& space = normalization.space;
  for (const Operand& output : problem.outputs) space.add(output);
  for (const size_t i : {1, 2})
    if (problem.has_input(i))
      space.add(rows.by_channel ? channel_column(problem.inputs[i], x.rank()) : problem.inputs[i]);
  for (const Operand& operand : problem.operands) space.add(operand);
  add_prologue_operands(problem, space);
  for (int d = rows.first_axis; d < x.rank(); ++d) space.reduce(static_cast<size_t>(d));
  if (rows.groups > 0) space.split(1, rows.groups);
  space.simplify();
  return normalization;
}

RowStatistic statistic_of(const RowNormalization& rows) {
  if (rows.subtracts_mean) return {"Moments", hexadecimal(rows.epsilon), 12};
  return {"MeanSquare", hexadecimal(rows.epsilon), 4};
}

Matched match_normalization(const Problem& problem) {
  const std::optional<RowNormalization> rows = row_normalization(problem);
  if (!rows && !problem.is(OpKind::lp_normalization)) return refuse("not a normalization");
  if (auto reason = refuse_row_problem(problem, {.further_program_results = true})) return refuse(*std::move(reason));
  if (auto reason = refuse_types(problem)) return refuse(*std::move(reason));
  return match_rows(problem, rows ? normalization_of(problem, *rows) : p_norm_of(problem));
}

}  // namespace lathe::cuda
