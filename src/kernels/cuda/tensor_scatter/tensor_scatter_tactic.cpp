// SPDX-License-Identifier: Apache-2.0
// Caches of keys and values, in place, whose new slices are computed as they are written: keys are turned by their
// positions, and heads are read where a product has left them.
#include <algorithm>

#include "kernels/cuda/collapse.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr uint32_t kThreads = 256;

// How the axes of the update as it is read make up one of its dimensions: a stride for each axis of the dimension,
// whose elements are `stride` apart, and 0 for the others.
Shape strides_within(const Operand& update, size_t dimension, const Expr& stride) {
  Shape strides(update.dims.size(), Expr(0));
  std::vector<size_t> parts = update.reassociation;
  if (parts.empty()) parts.assign(update.dims.size(), 1);
  size_t end = 0;
  for (size_t d = 0; d <= dimension; ++d) end += parts[d];
  Expr apart = stride;
  for (size_t axis = end; axis-- > end - parts[dimension];) {
    strides[axis] = apart;
    apart *= update.dims[axis];
  }
  return strides;
}

// The result along the axes of the update.
Operand along_update(const Operand& result, const Operand& update) {
  Operand view = update;
  view.dtype = result.dtype;
  view.offset = result.offset;
  view.program = {}, view.operands.clear();
  view.strides.assign(update.dims.size(), Expr(0));
  for (size_t d = 0; d < result.dims.size(); ++d) {
    const Shape own = strides_within(update, d, result.strides[d]);
    for (size_t axis = 0; axis < own.size(); ++axis) view.strides[axis] += own[axis];
  }
  return view;
}

// Neighbours that are one vector of the result wherever the slices begin.
int width_of(const Operand& result, const Shape& entries, const Shape& slices, const Expr& pitch) {
  const int last = result.rank() - 1;
  if (unit_dim(result) != last || entries.back() != Expr(0) || slices.back() != Expr(0)) return 1;
  int width = std::min(vector_width(result), 8);
  while (width > 1 && mod(pitch, width) != Expr(0)) width /= 2;
  return width;
}

Result<Emission> emit(const Problem& problem, size_t axis) {
  const Operand &result = problem.outputs[0], &update = problem.inputs[1];
  const Shape entries = strides_within(update, 0, 1), slices = strides_within(update, axis, 1);
  const Operand view = along_update(result, update);
  const int width = width_of(view, entries, slices, result.strides[axis]);
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 1}, {StepInput::input, 2}};
  Source source("tensor_scatter/tensor_scatter.cuh");
  source.input(0, update, "X");
  source.input(1, problem.inputs[2], "First");
  std::vector<Operand> views = {update};
  for (const Operand& operand : update.operands) views.push_back(broadcast(operand, update));
  const Program identity{1, {}, {0}};
  source.prologue(update.is_computed() ? update.program : identity, views, emission.inputs.size());
  add_prologue_inputs(problem, 1, emission);
  source.list("Entries", entries);
  source.list("Slices", slices);
  source.output(0, view, "Out");
  Expr vectors = ceildiv(update.dims.back(), width);
  for (size_t d = 0; d + 1 < update.dims.size(); ++d) vectors *= update.dims[d];
  const std::string call =
      fmt::format("tensor_scatter_computed<{}>(X_, prologue_, First_, Entries_, Slices_, Out_, {}, {});", width,
                  source.number(result.dims[axis]), source.number(result.strides[axis]));
  emission.launches.push_back(source.finish(call, {ceildiv(vectors, int64_t{kThreads}), 1, 1}, kThreads, 0));
  return emission;
}

}  // namespace

Matched match_tensor_scatter(const Problem& problem) {
  if (!problem.is(OpKind::tensor_scatter)) return refuse("not a tensor_scatter");
  constexpr uint32_t kUpdate = 1 << 1;
  if (auto reason = unsupported_feature(
          problem, {.permuted_inputs = kUpdate, .reassociated_inputs = kUpdate, .prologues = kUpdate}))
    return refuse(*std::move(reason));
  if (!problem.in_place) return refuse("not in place");
  const auto& attrs = problem.attrs<TensorScatterAttrs>();
  if (attrs.circular) return refuse("a circular one");
  if (!problem.has_input(2)) return refuse("no places");
  if (!is_short_float(problem.outputs[0].dtype) || !is_short_float(problem.inputs[1].dtype))
    return refuse("elements that are no short floats");
  if (!problem.program.is_identity()) return refuse("a program behind it");
  const auto axis = normalize_axis(attrs.axis, problem.outputs[0].rank());
  if (!axis || *axis == 0) return refuse("slices of the batch");
  if (problem.inputs[1].rank() == 0) return refuse("a scalar");
  const double bytes = 2 * opt_bytes(problem.inputs[1]);
  const auto along = static_cast<size_t>(*axis);
  return match_later([&problem, along] { return emit(problem, along); }, memory_bound_us(problem.target, bytes));
}

}  // namespace lathe::cuda
