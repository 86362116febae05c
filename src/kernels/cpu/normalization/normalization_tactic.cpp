// SPDX-License-Identifier: Apache-2.0
// Layer, RMS, instance and group normalization: kernel "normalization".
#include "device/cpu/kernel.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/normalization/normalization.h"

namespace lathe::cpu {
namespace {

// The axes of a row, in the view that has several groups as a dimension.
uint32_t axes_of(const RowNormalization& rows, int rank) {
  const bool split = rows.groups > 1;
  const int first = rows.groups == 1 ? 1 : rows.first_axis;
  return ((1u << (rank + split)) - 1) & ~((1u << first) - 1);
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

}  // namespace

Matched match_normalization(const Problem& problem) {
  const std::optional<RowNormalization> rows = row_normalization(problem);
  if (!rows) return refuse("not a normalization");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b1})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem, {.levels = true})) return refuse(*std::move(reason));
  const int rank = problem.inputs[0].rank();
  if (rank == 0) return refuse("a scalar");
  if (rank + (rows->groups > 1) > kMaxRank) return refuse("too many dimensions");
  const NormalizationParams params{rows->subtracts_mean, axes_of(*rows, rank), rows->epsilon,
                                   problem.has_input(1), problem.has_input(2), std::max<int64_t>(rows->groups, 1)};
  if (!rows->by_channel) {
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

}  // namespace lathe::cpu
