// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

constexpr size_t kStarts = 1, kEnds = 2, kAxes = 3, kSteps = 4;

// Exporters write any huge number for "to the end"; no dimension reaches this.
constexpr int64_t kFar = INT32_MAX;

// Longer steps act alike: they take one element.
constexpr int64_t kLongStep = int64_t{1} << 62;

// A bound counted from the front, clamped below where it is a number; nullopt when its sign is open, as a negative
// bound counts from the end.
std::optional<Expr> from_front(const InferContext& context, const Expr& bound, const Expr& extent) {
  if (const std::optional<int64_t> value = bound.as_constant()) {
    if (*value >= 0) return bound;
    if (const std::optional<int64_t> length = extent.as_constant())
      return Expr(std::max<int64_t>(*value + *length, -1));
    return *value <= -kFar ? Expr(-1) : extent + bound;
  }
  if (extent + bound == Expr(0)) return Expr(0);  // the front, even of nothing
  const Range range = context.range(bound);
  if (range.min >= 0) return bound;
  return range.max < 0 ? std::optional(extent + bound) : std::nullopt;
}

// Elements taken from an axis of `extent`; nullopt when only running can tell.
std::optional<Expr> slice_length(const InferContext& context, const Expr& extent, const Expr& start, const Expr& end,
                                 int64_t step) {
  const std::optional<Expr> from = from_front(context, start, extent), to = from_front(context, end, extent);
  if (!from || !to) return std::nullopt;
  if (step > 0) {
    const bool whole = to->is_constant() && !extent.is_constant() && *to->as_constant() >= kFar;
    const Expr last = whole ? extent : smaller(context, *to, extent);
    return larger(context, ceildiv(last - larger(context, *from, 0), step), 0);
  }
  const bool whole = from->is_constant() && !extent.is_constant() && *from->as_constant() >= kFar;
  const Expr top = extent - 1;
  const Expr first = whole ? top : smaller(context, larger(context, *from, 0), top);
  return larger(context, ceildiv(first - larger(context, *to, -1), -step), 0);
}

// The same where all that start, end and step say is taken, which must lie in [0, extent).
Result<Expr> strict_length(InferContext& context, const Expr& extent, const Expr& start, const Expr& end,
                           int64_t step) {
  const bool to_front = step < 0 && end.as_constant().value_or(0) < 0;  // down to element 0
  Expr length = step > 0 ? ceildiv(end - start, step) : ceildiv(to_front ? start + 1 : start - end, -step);
  if (length == Expr(0)) return length;
  const Expr last = start + (length - 1) * step;
  if (context.assume(Relation::at_most, 0, start) &&
      context.assume(Relation::at_most, (step > 0 ? last : start) + 1, extent))
    return length;
  return fail(ErrorCode::shape_mismatch, "slice: {} elements from {} on, {} apart, are not all among {}",
              length.to_string(), start.to_string(), step, extent.to_string());
}

struct Cut {
  int64_t start = 0;
  int64_t step = 1;
};

// First element and step along one axis, for numbers.
Cut cut_of(int64_t extent, int64_t start, int64_t step) {
  if (start < 0) start = start < -extent ? 0 : start + extent;
  return {step > 0 ? std::min(start, extent) : std::clamp<int64_t>(start, 0, std::max<int64_t>(extent - 1, 0)), step};
}

Result<Ints> sliced_axes(std::optional<Ints> axes, size_t count, int64_t rank) {
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < count; ++i) axes->push_back(static_cast<int64_t>(i));
  }
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t& axis : *axes) {
    LATHE_ASSIGN(axis, normalize_axis(axis, rank, "slice: axis"));
    if (seen[static_cast<size_t>(axis)]) return fail(ErrorCode::shape_mismatch, "slice: axis {} is listed twice", axis);
    seen[static_cast<size_t>(axis)] = true;
  }
  return *std::move(axes);
}

// How many entries all lists have: what one of them is known to have, the others must.
Result<int64_t> count_of_entries(InferContext& context) {
  static constexpr std::string_view kNames[] = {"", "starts", "ends", "axes", "steps"};
  const auto text = [](size_t i) { return fmt::format("slice: {}", kNames[i]); };
  size_t known = kStarts;
  while (known < kSteps && !(context.has(known) && context.rank(known) == 1 && context.shape(known)[0].is_constant()))
    ++known;
  if (!context.has(known)) known = kStarts;
  LATHE_ASSIGN(const int64_t count, list_length(context, known, text(known)));
  for (size_t i = kStarts; i <= kSteps; ++i) {
    if (!context.has(i)) continue;
    LATHE_TRY(require_list(context, i, text(i)));
    if (!context.assume_equal(context.shape(i)[0], count))
      return fail(ErrorCode::shape_mismatch, "{} has {} entries, but {} has {}", text(i),
                  context.shape(i)[0].to_string(), kNames[known], count);
  }
  if (count > context.rank(0))
    return fail(ErrorCode::shape_mismatch, "slice: {} {} for an input of shape {}", count, kNames[known],
                to_string(context.shape(0)));
  return count;
}

}  // namespace

Result<> infer_slice(InferContext& context) {
  LATHE_ASSIGN(const int64_t entries, count_of_entries(context));
  const auto count = static_cast<size_t>(entries);
  Shape output = context.shape(0);
  const std::optional<Ints> given_axes = context.constant_elements(kAxes);
  if (context.has(kAxes) && !given_axes) {  // any axis may be cut
    if (count > 0)
      for (size_t d = 0; d < output.size(); ++d) output[d] = context.new_symbol("slice_dim", d);
    context.set(0, context.dtype(0), std::move(output));
    return {};
  }
  LATHE_ASSIGN(const Ints axes, sliced_axes(given_axes, count, context.rank(0)));
  for (size_t i = 0; i < count; ++i) {
    Expr& dim = output[static_cast<size_t>(axes[i])];
    const std::optional<Expr> start = context.element(kStarts, i), end = context.element(kEnds, i);
    const std::optional<int64_t> step =
        context.has(kSteps) ? context.element(kSteps, i).value_or(Expr::invalid()).as_constant() : 1;
    if (step == 0) return fail(ErrorCode::shape_mismatch, "slice: the step of axis {} is 0", axes[i]);
    const bool known = start && end && step;
    if (known && context.attrs<SliceAttrs>().strict) {
      LATHE_ASSIGN(dim, strict_length(context, dim, *start, *end, *step));
      continue;
    }
    const std::optional<Expr> length =
        known ? slice_length(context, dim, *start, *end, std::clamp(*step, -kLongStep, kLongStep)) : std::nullopt;
    dim = length ? *length : context.new_symbol("slice_dim", static_cast<size_t>(axes[i]));
  }
  context.set(0, context.dtype(0), std::move(output));
  move_elements(context);
  return {};
}

Result<> eval_slice(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  const Ints starts = to_ints(context.input(kStarts));
  const Ints steps = context.has(kSteps) ? to_ints(context.input(kSteps)) : Ints(starts.size(), 1);
  LATHE_ASSIGN(const Ints axes,
               sliced_axes(context.has(kAxes) ? std::optional(to_ints(context.input(kAxes))) : std::nullopt,
                           starts.size(), input.rank()));
  if (output.volume() == 0) return {};
  Dims strides = row_major_strides(input.dims());
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(axes[i]);
    const Cut cut = cut_of(input.dims()[axis], starts[i], steps[i]);
    offset += cut.start * strides[axis];
    strides[axis] = output.dims()[axis] > 1 ? strides[axis] * cut.step : 0;
  }
  const size_t size = size_of(input.dtype());
  copy_box(size, output.dims(), static_cast<const char*>(input.data()) + offset * static_cast<int64_t>(size), strides,
           output.mutable_data(), row_major_strides(output.dims()));
  return {};
}

}  // namespace lathe
