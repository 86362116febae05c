// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/inlined_tactic.h"

#include <algorithm>
#include <numeric>

#include "kernels/cuda/match.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kRowsAxis = 2;  // of [batch, heads, rows, size]

bool is_update(const Problem& step) { return step.is(OpKind::tensor_scatter); }

// How many axes of `parts`, which lie in the same memory, make up each dimension of `whole`; nullopt where they do not.
std::optional<std::vector<size_t>> axes_of_each(const Operand& whole, const Operand& parts) {
  std::vector<size_t> counts;
  size_t at = 0;
  for (size_t d = 0; d < whole.dims.size(); ++d) {
    const size_t begin = at;
    const bool is_last = d + 1 == whole.dims.size();
    Expr extent = 1;
    for (; at < parts.dims.size() && (is_last || extent != whole.dims[d] || parts.dims[at] == Expr(1)); ++at)
      extent *= parts.dims[at];
    if (extent != whole.dims[d]) return std::nullopt;
    Expr stride = whole.strides[d];
    for (size_t axis = at; axis-- > begin;) {
      if (parts.dims[axis] == Expr(1)) continue;
      if (parts.strides[axis] != stride) return std::nullopt;
      stride *= parts.dims[axis];
    }
    counts.push_back(at - begin);
  }
  return at == parts.dims.size() ? std::optional(counts) : std::nullopt;
}

// What a step computes its rows of: a tensor along the axes that its `reassociation` collapses into the input's.
std::optional<Operand> rows_of(const Problem& problem, const InlinedStep& step) {
  const Operand& input = problem.inputs[step.input];
  if (is_update(step.problem)) {
    Operand rows = step.problem.inputs[1];
    if (rows.reassociation.empty()) rows.reassociation.assign(rows.dims.size(), 1);
    return rows;
  }
  std::optional<std::vector<size_t>> parts = axes_of_each(input, step.problem.outputs[0]);
  if (!parts) return std::nullopt;
  if (step.problem.operands[0].padding) return std::nullopt;
  Operand rows = broadcast(step.problem.operands[0], step.problem.outputs[0]);
  rows.reassociation = *std::move(parts);
  rows.program = step.problem.program;
  rows.operands.assign(step.problem.operands.begin() + 1, step.problem.operands.end());
  return rows;
}

// Neighbours along the rows that are neighbours along the tensor's last axis, up to a vector of 8-bit elements.
int64_t run_of(const Operand& rows) {
  constexpr int64_t kMost = 16;
  if (rows.reassociation.back() <= 1) return kMost;
  const int64_t last = rows.dims.back().as_constant().value_or(1);
  return std::gcd(last, kMost);
}

std::optional<std::string> refuse_step(const Problem& problem, const InlinedStep& step) {
  const Operand& input = problem.inputs[step.input];
  const Problem& own = step.problem;
  if (input.is_computed() || input.pages || !input.reassociation.empty() || input.dims.size() != 4)
    return "an input that is written before it, and read in another order";
  if (is_update(own)) {
    const auto axis = normalize_axis(own.attrs<TensorScatterAttrs>().axis, own.outputs[0].rank());
    if (!own.in_place || own.attrs<TensorScatterAttrs>().circular || !own.has_input(2) || axis != kRowsAxis)
      return "a cache that is not updated in place from places on that it is told";
    if (!own.program.is_identity()) return "a program behind a cache";
    if (whole_dims(own.inputs[1])[kRowsAxis] != problem.inputs[0].dims[kRowsAxis])
      return "another number of new keys than of queries";
  } else if (own.attributes || step.input != 0 || own.outputs.size() != 1 || own.operands.empty()) {
    return "a step before it that computes no queries";
  }
  const std::optional<Operand> rows = rows_of(problem, step);
  if (!rows || rows->dims.empty()) return "rows of another order than those of the step that computes them, or padded";
  if (rows->padding || rows->dtype != input.dtype) return "rows of other elements than are computed of them";
  return std::nullopt;
}

// The step's tensor that the rows are read from, and what their program reads.
StepInput source_of(const InlinedStep& step, size_t number) {
  return {is_update(step.problem) ? StepInput::input : StepInput::operand, is_update(step.problem) ? 1u : 0u, false, 0,
          number};
}
StepInput operand_at(const InlinedStep& step, size_t number, size_t k) {
  if (!is_update(step.problem)) return {StepInput::operand, k + 1, false, 0, number};
  return {StepInput::input_operand, 1, false, k, number};
}

// The type and the object of the rows as they are computed.
std::pair<std::string, std::string> declare_rows(Source& source, const Operand& rows, const InlinedStep& step,
                                                 size_t number, std::string_view name, Emission& emission) {
  std::string type = fmt::format("{}Rows", name), object = type + "_";
  source.input(emission.inputs.size(), rows, type);
  emission.inputs.push_back(source_of(step, number));
  if (rows.is_computed() && !(rows.program.is_identity() && rows.operands.empty())) {
    std::vector<Operand> views = {rows};
    for (const Operand& operand : rows.operands) views.push_back(broadcast(operand, rows));
    source.prologue(rows.program, views, emission.inputs.size(), name);
    for (size_t k = 0; k < rows.operands.size(); ++k) emission.inputs.push_back(operand_at(step, number, k));
    object = fmt::format("{{{}, {}Prologue_}}", object, name);
    type = fmt::format("Computed<{}, {}Prologue>", type, name);
  }
  const std::vector<size_t>& parts = rows.reassociation;
  return {fmt::format("Collapsed<{}, {}, {}, {}, {}, {}>", type, parts[0], parts[1], parts[2], parts[3], run_of(rows)),
          fmt::format("{{{}}}", object)};
}

}  // namespace

std::optional<std::string> refuse_inlined(const Problem& problem) {
  for (const InlinedStep& step : problem.inlined)
    if (auto reason = refuse_step(problem, step)) return reason;
  // What all blocks do again takes longer than a launch where there are many: measured, 8 heads and 64 on 132
  // multiprocessors are faster, 512 are slower.
  const Dims& keys = problem.inputs[1].opt_dims;
  if (const int64_t heads = keys[0] * keys[1]; 2 * heads > problem.target.cores)
    return fmt::format("{} heads of keys, of all texts, for {} multiprocessors", heads, problem.target.cores);
  return std::nullopt;
}

std::optional<size_t> inlined_at(const Problem& problem, size_t input) {
  const auto at = std::ranges::find(problem.inlined, input, &InlinedStep::input);
  if (at == problem.inlined.end()) return std::nullopt;
  return static_cast<size_t>(at - problem.inlined.begin());
}

std::string declare_inlined(Source& source, const Problem& problem, size_t number, std::string_view name,
                            Emission& emission) {
  const InlinedStep& step = problem.inlined[number];
  const auto [type, object] = declare_rows(source, *rows_of(problem, step), step, number, name, emission);
  if (!is_update(step.problem)) return fmt::format("const {} {}_{}; ", type, name, object);
  const auto updates_before = static_cast<size_t>(
      std::count_if(problem.inlined.begin(), problem.inlined.begin() + static_cast<ptrdiff_t>(number),
                    [](const InlinedStep& other) { return is_update(other.problem); }));
  source.output(problem.outputs.size() + updates_before, problem.inputs[step.input], fmt::format("{}Cache", name));
  source.input(emission.inputs.size(), step.problem.inputs[2], fmt::format("{}First", name));
  emission.inputs.push_back({StepInput::input, 2, false, 0, number});
  return fmt::format("const Updated<{0}Cache, {1}, {0}First> {0}_{{{0}Cache_, {2}, {0}First_, 0, 0}}; ", name, type,
                     object);
}

}  // namespace lathe::cuda
