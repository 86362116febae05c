// SPDX-License-Identifier: Apache-2.0
// Ops that move elements or make them of nothing but numbers.
#include <algorithm>
#include <cstring>

#include "kernels/cuda/generic/op_source.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kMovement = "generic/movement.cuh", kGenerators = "generic/generators.cuh";

Expr elements(const Operand& operand) { return volume(operand.dims); }

// A call with input 0 and output 0 as bits.
Result<Emission> emit_simple(const Problem& problem, std::string_view function) {
  Emission emission;
  OpSource source(kMovement, problem, emission);
  const std::string in = source.input(0, true), out = source.output(0, true);
  source.finish(fmt::format("{}({}, {});", function, in, out), elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_view(const Problem& problem) { return emit_simple(problem, "reshape"); }
Result<Emission> emit_tile(const Problem& problem) { return emit_simple(problem, "tile"); }

Result<Emission> emit_moved(const Problem& problem, const Operand& view) {
  Emission emission;
  OpSource source(kMovement, problem, emission);
  const std::string in = source.input_as(0, view, true), out = source.output(0, true);
  source.finish(fmt::format("move_elements({}, {});", in, out), elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_expand(const Problem& problem) {
  return emit_moved(problem, broadcast(problem.inputs[0], problem.outputs[0]));
}

Result<Emission> emit_transpose(const Problem& problem) {
  const Operand& in = problem.inputs[0];
  Operand view = problem.outputs[0];
  const Ints perm = permutation_of(problem.attrs<TransposeAttrs>(), view.dims.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    view.strides[i] = in.strides[static_cast<size_t>(perm[i])];
    view.opt_strides[i] = in.opt_strides[static_cast<size_t>(perm[i])];
  }
  return emit_moved(problem, view);
}

// For each dimension, which entry of the op's lists speaks of it; -1 = none.
Result<Shape> places(const Problem& problem, size_t axes_input, int64_t count) {
  const int64_t rank = problem.inputs[0].rank();
  Ints axes;
  for (int64_t i = 0; i < count; ++i) axes.push_back(i);
  if (problem.has_input(axes_input)) {
    const std::optional<Ints> known = known_contents(problem, axes_input);
    if (!known) return fail(ErrorCode::no_tactic, "its axes are only known while running");
    axes = *known;
  }
  Shape result(static_cast<size_t>(rank), -1);
  for (size_t i = 0; i < axes.size(); ++i) {
    LATHE_ASSIGN(const int64_t axis, normalize_axis(axes[i], rank));
    result[static_cast<size_t>(axis)] = static_cast<int64_t>(i);
  }
  return result;
}

Result<Emission> emit_slice(const Problem& problem) {
  const std::optional<int64_t> count = problem.inputs[1].dims[0].as_constant();
  if (!count) return fail(ErrorCode::no_tactic, "the number of its axes is only known while running");
  LATHE_ASSIGN(const Shape place, places(problem, 3, *count));
  Emission emission;
  OpSource source(kMovement, problem, emission);
  const std::string in = source.input(0, true), out = source.output(0, true), starts = source.contents(1, "Starts");
  const std::string steps =
      source.has(4) ? source.contents(4, "Steps") : source.list("Steps", Shape(static_cast<size_t>(*count), 1));
  source.finish(fmt::format("slice({}, {}, {}, {}, {});", in, out, starts, steps, source.list("Place", place)),
                elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_pad(const Problem& problem) {
  const std::optional<int64_t> length = problem.inputs[1].dims[0].as_constant();
  if (!length) return fail(ErrorCode::no_tactic, "the number of its axes is only known while running");
  LATHE_ASSIGN(const Shape place, places(problem, 3, *length / 2));
  static constexpr std::string_view kKinds[] = {"constant", "reflect", "edge", "wrap"};
  const std::string_view kind = kKinds[static_cast<size_t>(problem.attrs<PadAttrs>().mode)];
  Emission emission;
  OpSource source(kMovement, problem, emission);
  const std::string in = source.input(0, true), out = source.output(0, true), pads = source.contents(1, "Pads");
  const std::string value = source.has(2) ? source.input(2, true) + ".data" : "nullptr";
  source.finish(fmt::format("pad<PadKind::{}, {}>({}, {}, {}, {}, {});", kind, *length / 2, in, out, pads,
                            source.list("Place", place), value),
                elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_concat(const Problem& problem) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(problem.attrs<ConcatAttrs>().axis, problem.outputs[0].rank()));
  Emission emission;
  OpSource source(kMovement, problem, emission);
  std::string call = fmt::format("concat<{}>({}", axis, source.output(0, true));
  for (size_t i = 0; i < problem.inputs.size(); ++i) call += ", " + source.input(i, true);
  source.finish(call + ");", elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_split(const Problem& problem) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(problem.attrs<SplitAttrs>().axis, problem.inputs[0].rank()));
  Emission emission;
  OpSource source(kMovement, problem, emission);
  std::string call = fmt::format("split<{}>({}", axis, source.input(0, true));
  for (size_t i = 0; i < problem.outputs.size(); ++i) call += ", " + source.output(i, true);
  source.finish(call + ");", elements(problem.inputs[0]));
  return emission;
}

Result<Emission> emit_depth_to_space(const Problem& problem) {
  const auto& attrs = problem.attrs<DepthToSpaceAttrs>();
  return emit_simple(problem, fmt::format("depth_to_space<{}, {}>", attrs.mode == DepthToSpaceMode::dcr, attrs.block));
}

Result<Emission> emit_space_to_depth(const Problem& problem) {
  return emit_simple(problem, fmt::format("space_to_depth<{}>", problem.attrs<SpaceToDepthAttrs>().block));
}

Result<Emission> emit_trilu(const Problem& problem) {
  Emission emission;
  OpSource source(kMovement, problem, emission);
  const std::string in = source.input(0, true), out = source.output(0, true);
  const std::string k = source.has(1) ? source.contents(1, "K") : source.list("K", {0});
  source.finish(fmt::format("trilu<{}>({}, {}, {});", problem.attrs<TriluAttrs>().upper, in, out, k),
                elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_values(const Problem& problem, const Shape& values) {
  Emission emission;
  OpSource source(kGenerators, problem, emission);
  const std::string out = source.output(0);
  source.finish(fmt::format("write_values({}, {});", out, source.list("Values", values)), elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_shape(const Problem& problem) {
  const auto& attrs = problem.attrs<ShapeAttrs>();
  const Shape& dims = problem.inputs[0].dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto clamp = [&](int64_t bound) { return std::clamp<int64_t>(bound < 0 ? bound + rank : bound, 0, rank); };
  const int64_t start = clamp(attrs.start), end = std::max(start, clamp(attrs.end));
  return emit_values(problem, Shape(dims.begin() + start, dims.begin() + end));
}

Result<Emission> emit_size(const Problem& problem) { return emit_values(problem, {elements(problem.inputs[0])}); }

Result<Emission> emit_fill(const Problem& problem) {
  const Tensor& value = problem.attrs<FillAttrs>().value;
  uint64_t bits = 0;
  if (value.defined()) std::memcpy(&bits, value.data(), size_of(value.dtype()));
  Emission emission;
  OpSource source(kGenerators, problem, emission);
  source.finish(fmt::format("fill({}, {}UL);", source.output(0, true), bits), elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_range(const Problem& problem) {
  Emission emission;
  OpSource source(kGenerators, problem, emission);
  const std::string start = source.input(0), delta = source.input(2);
  source.finish(fmt::format("range({}, {}, {});", start, delta, source.output(0)), elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_eye_like(const Problem& problem) {
  Emission emission;
  OpSource source(kGenerators, problem, emission);
  const std::string out = source.output(0);
  source.finish(fmt::format("eye({}, {});", out, source.source().number(problem.attrs<EyeLikeAttrs>().k)),
                elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_one_hot(const Problem& problem) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(problem.attrs<OneHotAttrs>().axis, problem.outputs[0].rank()));
  Emission emission;
  OpSource source(kGenerators, problem, emission);
  const std::string indices = source.input(0), values = source.input(2, true), out = source.output(0, true);
  source.finish(fmt::format("one_hot<{}>({}, {}, {});", axis, indices, values, out), elements(problem.outputs[0]));
  return emission;
}

}  // namespace

std::span<const GenericOp> movement_ops() {
  static constexpr GenericOp kOps[] = {
      {OpKind::bitcast, emit_view},
      {OpKind::reshape, emit_view},
      {OpKind::flatten, emit_view},
      {OpKind::squeeze, emit_view},
      {OpKind::unsqueeze, emit_view},
      {OpKind::transpose, emit_transpose},
      {OpKind::slice, emit_slice},
      {OpKind::concat, emit_concat},
      {OpKind::split, emit_split},
      {OpKind::pad, emit_pad},
      {OpKind::expand, emit_expand},
      {OpKind::tile, emit_tile},
      {OpKind::depth_to_space, emit_depth_to_space},
      {OpKind::trilu, emit_trilu},
      {OpKind::space_to_depth, emit_space_to_depth},
      {OpKind::shape, emit_shape},
      {OpKind::size, emit_size},
      {OpKind::fill, emit_fill},
      {OpKind::range, emit_range},
      {OpKind::eye_like, emit_eye_like},
      {OpKind::one_hot, emit_one_hot},
  };
  return kOps;
}

}  // namespace lathe::cuda
