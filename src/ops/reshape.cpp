// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "ops/copy_box.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

struct Volumes {
  Expr whole, part;
};

// The volumes of both shapes, without the dims and the constant factors that they share. Cancelling a symbol is right
// even where it is 0, as both volumes are 0 then: [n, 4] as [n, -1] is 4 elements over 1.
Volumes cancelled(Shape whole, Shape part) {
  for (size_t p = 0; p < part.size();) {
    const auto match = std::find(whole.begin(), whole.end(), part[p]);
    if (match == whole.end() || part[p] == Expr(0)) {
      ++p;
      continue;
    }
    whole.erase(match);
    part.erase(part.begin() + static_cast<ptrdiff_t>(p));
  }
  for (Expr& w : whole)
    for (Expr& p : part) {
      const std::optional<int64_t> a = w.as_constant(), b = p.as_constant();
      const int64_t common = a && b && *a != 0 && *b != 0 ? std::gcd(*a, *b) : 1;
      if (common != 1) w = *a / common, p = *b / common;
    }
  return {volume(whole), volume(part)};
}

// Whether that entry of the shape input copies the input's dimension.
bool copies(const InferContext& context, size_t i) {
  return !context.attrs<ReshapeAttrs>().allow_zero && context.element(1, i) == Expr(0);
}

// One entry of the shape input; nullopt = the -1.
Result<std::optional<Expr>> target_dim(InferContext& context, size_t i, const Expr& element) {
  const Shape& input = context.shape(0);
  const std::optional<int64_t> value = element.as_constant();
  // A computed entry that cannot be -1 is the dim. When it comes out as 0, the tensor is empty: only a constant 0 means
  // "copy the dimension of the input".
  if (!value) return proven_at_least(context, element, 0) ? element : context.new_symbol("reshape_dim", i);
  if (*value == -1) return std::optional<Expr>();
  if (*value < -1)
    return fail(ErrorCode::shape_mismatch, "reshape: entry {} of the shape is {}, expected -1 or more", i, *value);
  if (!copies(context, i)) return std::optional<Expr>(*value);
  if (i >= input.size())
    return fail(ErrorCode::shape_mismatch,
                "reshape: entry {} of the shape is 0 (copy), but the input of shape {} has no such dimension", i,
                to_string(input));
  return std::optional<Expr>(input[i]);
}

}  // namespace

Result<> infer_reshape(InferContext& context) {
  const Shape& input = context.shape(0);
  LATHE_ASSIGN(const int64_t rank, list_length(context, 1, "reshape: shape"));
  Shape output, known, rest = input;  // what is left of the input, and listed, beside dimensions that are copied
  std::optional<size_t> inferred;
  for (size_t i = 0; i < static_cast<size_t>(rank); ++i) {
    std::optional<Expr> dim;
    if (const std::optional<Expr> element = context.element(1, i)) {
      LATHE_ASSIGN(dim, target_dim(context, i, *element));
    } else {
      dim = context.new_symbol("reshape_dim", i);
    }
    if (!dim && inferred) return fail(ErrorCode::shape_mismatch, "reshape: the shape has more than one -1");
    if (!dim) inferred = i;
    output.push_back(dim.value_or(Expr(1)));
    if (copies(context, i))
      rest[i] = 1;
    else if (dim)
      known.push_back(*dim);
  }
  const auto [whole, part] = cancelled(rest, known);
  if (inferred) {
    if (part == Expr(0))
      return fail(ErrorCode::shape_mismatch, "reshape: -1 cannot be worked out beside a dimension of 0 (input {})",
                  to_string(input));
    if (!context.assume_equal(mod(whole, part), 0))
      return fail(ErrorCode::shape_mismatch, "reshape: the {} elements of input {} do not divide by {}",
                  volume(input).to_string(), to_string(input), volume(output).to_string());
    // Nothing over what is not known may be anything, for that may copy the dimension of 0.
    const bool is_open = whole == Expr(0) && !part.is_constant();
    output[*inferred] = is_open ? context.new_symbol("reshape_dim", *inferred) : floordiv(whole, part);
  } else if (!context.assume_equal(volume(input), volume(output))) {
    return fail(ErrorCode::shape_mismatch, "reshape: input {} has {} elements, but shape {} needs {}", to_string(input),
                volume(input).to_string(), to_string(output), volume(output).to_string());
  }
  context.set(0, context.dtype(0), std::move(output));
  if (context.partial_elements(0)) context.set_elements(0, *context.partial_elements(0));
  return {};
}

Result<> eval_reshape(EvalContext& context) { return eval_view(context); }

}  // namespace lathe
