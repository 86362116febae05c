// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

#include <algorithm>

#include "shape/broadcast.h"

namespace lathe {

Result<int64_t> normalize_axis(int64_t axis, int64_t rank, std::string_view what) {
  if (axis < -rank || axis >= rank)
    return fail(ErrorCode::attribute_invalid, "{} is {}, but must lie in [{}, {}] for a tensor of rank {}", what, axis,
                -rank, rank - 1, rank);
  return axis < 0 ? axis + rank : axis;
}

Result<Ints> normalize_axes(std::span<const int64_t> axes, int64_t rank, std::string_view what) {
  Ints out;
  for (int64_t axis : axes) {
    LATHE_ASSIGN(out.emplace_back(), normalize_axis(axis, rank, what));
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    return fail(ErrorCode::attribute_invalid, "{} name the same axis twice; list each axis once", what);
  return out;
}

namespace {

// The dimension that two broadcast to: one that cannot be 1 or that the other expands to, where that is known; the
// simpler one where neither can be 1, for then they must be equal. Numbers are left to broadcast_dim(), which takes the
// number rather than an expression that must equal it.
Expr broadcast_in_range(const InferContext& context, const Expr& a, const Expr& b) {
  const auto excludes_one = [&](const Expr& dim) { return context.range(dim).min > 1; };
  if (a.is_constant() || b.is_constant()) return broadcast_dim(a, b);
  if (context.expands(a, b)) return b;
  if (context.expands(b, a)) return a;
  if (excludes_one(a) && (!excludes_one(b) || a.size() < b.size())) return a;
  return excludes_one(b) ? b : broadcast_dim(a, b);
}

}  // namespace

Result<Shape> broadcast(InferContext& context, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    if (!context.assume(Relation::broadcast, longer[lead + i], shorter[i]))
      return fail(ErrorCode::shape_mismatch,
                  "shapes {} and {} do not broadcast: aligned at the last axis, dims must be equal or one of them 1",
                  to_string(a), to_string(b));
    out[lead + i] = broadcast_in_range(context, longer[lead + i], shorter[i]);
  }
  return out;
}

bool assume_expands(InferContext& context, const Shape& from, const Shape& to) {
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i)
    fits = context.assume(Relation::expand, from[from.size() - 1 - i], to[to.size() - 1 - i]);
  return fits;
}

Dims broadcast_dims(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Dims out(a.begin(), a.end());
  const size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i)
    if (b[i] != 1) out[lead + i] = b[i];
  return out;
}

Dims broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> result) {
  const Dims own = row_major_strides(dims);
  Dims strides(result.size(), 0);
  const size_t lead = result.size() - dims.size();
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1) strides[lead + i] = own[i];
  return strides;
}

AxisSplit split_at(std::span<const int64_t> dims, int64_t axis) {
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
  AxisSplit split;
  for (size_t i = 0; i < dims.size(); ++i) (i < at ? split.outer : i == at ? split.extent : split.inner) *= dims[i];
  return split;
}

Runs::Runs(const Dims& result, std::span<const Dims> operands) : steps_(operands.size()) {
  std::vector<Dims> strides;
  for (const Dims& dims : operands) strides.push_back(broadcast_strides(dims, result));
  // Merge each dim into its inner neighbour when every operand walks both with one stride.
  Dims merged;  // innermost first
  std::vector<Dims> merged_strides(operands.size());
  for (size_t d = result.size(); d-- > 0;) {
    if (result[d] == 1) continue;
    bool joins = !merged.empty();
    for (size_t k = 0; joins && k < strides.size(); ++k)
      joins = strides[k][d] == merged_strides[k].back() * merged.back();
    if (joins) {
      merged.back() *= result[d];
      continue;
    }
    merged.push_back(result[d]);
    for (size_t k = 0; k < strides.size(); ++k) merged_strides[k].push_back(strides[k][d]);
  }
  count_ = merged.empty() ? 1 : merged.front();
  total_ = 1;
  for (size_t k = 0; k < operands.size(); ++k) {
    Dims& own = merged_strides[k];
    steps_[k] = own.empty() ? 0 : own.front();
    if (!own.empty()) own.erase(own.begin());
    std::reverse(own.begin(), own.end());
  }
  if (!merged.empty()) merged.erase(merged.begin());
  std::reverse(merged.begin(), merged.end());
  for (int64_t dim : merged) total_ *= dim;
  if (count_ == 0) total_ = 0;
  walk_ = Walk(std::move(merged), std::move(merged_strides));
}

Result<> require_floating(const InferContext& context, size_t input) {
  if (is_floating(context.dtype(input))) return {};
  return fail(ErrorCode::type_mismatch, "input {} has type {}, but a floating type is needed; cast it first", input,
              name_of(context.dtype(input)));
}

Result<> require_integer(const InferContext& context, size_t input) {
  if (is_integer(context.dtype(input))) return {};
  return fail(ErrorCode::type_mismatch, "input {} has type {}, but an integer type is needed; cast it first", input,
              name_of(context.dtype(input)));
}

Result<> require_numeric(const InferContext& context, size_t input) {
  if (context.dtype(input) != DType::boolean) return {};
  return fail(ErrorCode::type_mismatch, "input {} has type bool, but a number type is needed; cast it first", input);
}

Result<> require_same_dtype(const InferContext& context, size_t a, size_t b) {
  if (context.dtype(a) == context.dtype(b)) return {};
  return fail(ErrorCode::type_mismatch,
              "input {} has type {} and input {} has type {}, but they must agree; cast one of them", a,
              name_of(context.dtype(a)), b, name_of(context.dtype(b)));
}

Result<> require_factors(const InferContext& context, size_t a, size_t b) {
  const auto is_small = [&](size_t input) {
    return size_of(context.dtype(input)) == 1 && is_integer(context.dtype(input));
  };
  return is_small(a) && is_small(b) ? Result<>() : require_same_dtype(context, a, b);
}

Result<> require_rounding(DType factors) {
  if (factors == DType::f32 || factors == DType::bf16) return {};
  return fail(ErrorCode::graph_invalid, "factors may be rounded to bf16, or not (f32), but not to {}",
              name_of(factors));
}

Result<> require_rank(const InferContext& context, size_t input, int at_least, int at_most) {
  const int rank = context.rank(input);
  if (rank >= at_least && rank <= at_most) return {};
  const std::string expected = at_least == at_most ? fmt::format("rank {}", at_least)
                               : at_most >= kMany  ? fmt::format("rank {} or more", at_least)
                                                   : fmt::format("a rank from {} to {}", at_least, at_most);
  return fail(ErrorCode::shape_mismatch, "input {} has shape {} of rank {}, but {} is needed", input,
              to_string(context.shape(input)), rank, expected);
}

Window window_rule(const Expr& input, const Expr& kernel, int64_t stride, int64_t dilation, int64_t pad_begin,
                   int64_t pad_end, PaddingMode mode) {
  const Expr extent = (kernel - 1) * dilation + 1;
  if (mode == PaddingMode::same_upper || mode == PaddingMode::same_lower) {
    const Expr output = ceildiv(input, stride);
    const Expr total = max((output - 1) * stride + extent - input, 0);
    const Expr half = floordiv(total, 2);
    return mode == PaddingMode::same_upper ? Window{output, half, total - half} : Window{output, total - half, half};
  }
  const Expr room = input + (pad_begin + pad_end) - extent;
  if (mode == PaddingMode::explicit_round_down) return {floordiv(room, stride) + 1, pad_begin, pad_end};
  // Rounding up must not add a window that lies in the end padding altogether.
  return {min(ceildiv(room, stride), floordiv(input + (pad_begin - 1), stride)) + 1, pad_begin, pad_end};
}

}  // namespace lathe
