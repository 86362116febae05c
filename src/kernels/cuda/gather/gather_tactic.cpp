// SPDX-License-Identifier: Apache-2.0
// Gathers along one axis, as of an embedding's rows, by vectors.
#include <algorithm>

#include "kernels/cuda/collapse.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr uint32_t kThreads = 256;  // as of others that launches are joined with

// An input as it is read along the result's dimensions: own[d] is its dimension that goes with d, -1 = none does.
Operand along_result(const Operand& input, const Operand& result, const std::vector<int>& own) {
  Operand view = result;
  view.dtype = input.dtype;
  view.offset = input.offset;
  for (size_t d = 0; d < own.size(); ++d) {
    const auto at = static_cast<size_t>(own[d]);
    view.strides[d] = own[d] < 0 ? Expr(0) : input.strides[at];
    view.opt_strides[d] = own[d] < 0 ? 0 : input.opt_strides[at];
  }
  return view;
}

// The result, the table, the indices and the program's operands, all in the same collapsed dims.
std::vector<Operand> views_of(const Problem& problem, int axis) {
  const Operand &table = problem.inputs[0], &indices = problem.inputs[1], &result = problem.outputs[0];
  std::vector<int> of_table, of_indices;
  for (int d = 0; d < result.rank(); ++d) {
    const bool is_index = d >= axis && d < axis + indices.rank();
    of_table.push_back(is_index ? -1 : d < axis ? d : d - indices.rank() + 1);
    of_indices.push_back(is_index ? d - axis : -1);
  }
  std::vector<Operand> views = {result, along_result(table, result, of_table),
                                along_result(indices, result, of_indices)};
  for (const Operand& operand : problem.operands) views.push_back(broadcast(operand, result));
  return collapse(std::move(views));
}

// Neighbours that are one vector of the table and of the result whatever the row.
int width_of(const Operand& result, const Operand& table, const Operand& indices, const Expr& pitch) {
  const int last = result.rank() - 1;
  if (unit_dim(result) != last || unit_dim(table) != last || indices.strides.back() != Expr(0)) return 1;
  int width = std::min({vector_width(result), vector_width(table), 8});
  while (width > 1 && mod(pitch, width) != Expr(0)) width /= 2;
  return width;
}

// Whether elements stay as they are, bit by bit.
bool only_moves(const Problem& problem) {
  return problem.program.is_identity() && problem.inputs[0].dtype == problem.outputs[0].dtype;
}

Result<Emission> emit(const Problem& problem, int axis) {
  const Operand& whole = problem.inputs[0];
  const Expr &extent = whole.dims[static_cast<size_t>(axis)], &pitch = whole.strides[static_cast<size_t>(axis)];
  std::vector<Operand> views = views_of(problem, axis);
  const bool is_moved = only_moves(problem);
  if (is_moved) views[0].dtype = views[1].dtype = raw_type(views[1].dtype);
  const Operand &result = views[0], &table = views[1], &indices = views[2];
  Emission emission;
  emission.inputs = {{StepInput::input, 0}, {StepInput::input, 1}};
  Source source("gather/gather.cuh");
  source.input(0, table, "Table");
  source.input(1, indices, "Indices");
  source.output(0, result, "Out");
  if (!is_moved) {
    source.fusion(problem, result, {views.begin() + 3, views.end()}, emission.inputs.size());
    add_operand_inputs(problem, emission);
  }
  const int width = width_of(result, table, indices, pitch);
  Expr vectors = ceildiv(result.dims.back(), width);
  for (size_t d = 0; d + 1 < result.dims.size(); ++d) vectors *= result.dims[d];
  const std::string call = fmt::format("gather_rows<{}, {}>(Table_, Indices_, Out_, {}, {}{});", width,
                                       fits_32_bits({result}) ? "unsigned" : "unsigned long", source.number(pitch),
                                       source.number(extent), is_moved ? "" : ", fusion_");
  emission.launches.push_back(source.finish(call, {ceildiv(vectors, int64_t{kThreads}), 1, 1}, kThreads, 0));
  return emission;
}

}  // namespace

Matched match_gather(const Problem& problem) {
  if (!problem.is(OpKind::gather)) return refuse("not a gather");
  if (auto reason = unsupported_feature(problem, {.float8 = true})) return refuse(*std::move(reason));
  const Operand &table = problem.inputs[0], &result = problem.outputs[0];
  if (is_packed(table.dtype)) return refuse(fmt::format("{} is packed", name_of(table.dtype)));
  const auto is_held = [](DType dtype) { return is_floating(dtype) ? dtype != DType::f64 : size_of(dtype) <= 2; };
  if (!only_moves(problem) && (!is_held(table.dtype) || !is_held(result.dtype)))
    return refuse(fmt::format("floats do not hold {}", name_of(is_held(table.dtype) ? result.dtype : table.dtype)));
  const auto axis = normalize_axis(problem.attrs<GatherAttrs>().axis, table.rank());
  if (!axis) return refuse("its axis is out of range");
  double bytes = 2 * opt_bytes(result) + opt_bytes(problem.inputs[1]);
  for (const Operand& operand : problem.operands) bytes += opt_bytes(operand);
  const auto along = static_cast<int>(*axis);
  return match_later([&problem, along] { return emit(problem, along); }, memory_bound_us(problem.target, bytes));
}

}  // namespace lathe::cuda
