// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/rules.h"

namespace lathe {
namespace {

bool is_nan(double value) { return std::isnan(value); }
bool is_nan(int64_t) { return false; }

// Whether a later element replaces the best one so far. NaN beats all, the first NaN stays.
template <class T>
bool replaces(T value, T best, const ArgReduceAttrs& attrs) {
  if (is_nan(best)) return is_nan(value) && attrs.select_last;
  if (is_nan(value)) return true;
  if (value == best) return attrs.select_last;
  return attrs.largest ? value > best : value < best;
}

template <class T>
void find(const std::vector<T>& x, const AxisSplit& split, const ArgReduceAttrs& attrs, int64_t* out) {
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t r = 0; r < split.inner; ++r) {
      const T* row = x.data() + o * split.extent * split.inner + r;
      int64_t best = 0;
      for (int64_t i = 1; i < split.extent; ++i)
        if (replaces(row[i * split.inner], row[best * split.inner], attrs)) best = i;
      *out++ = best;
    }
}

}  // namespace

Result<> infer_arg_reduce(InferContext& context) {
  const ArgReduceAttrs& attrs = context.attrs<ArgReduceAttrs>();
  LATHE_TRY(require_numeric(context, 0));
  LATHE_ASSIGN(const int64_t axis, normalize_axis(attrs.axis, context.rank(0)));
  Shape shape = context.shape(0);
  if (shape[static_cast<size_t>(axis)] == Expr(0))
    return fail(ErrorCode::shape_mismatch, "input of shape {} is empty along axis {}, so that no element is the {}",
                to_string(shape), axis, attrs.largest ? "largest" : "smallest");
  if (attrs.keepdims)
    shape[static_cast<size_t>(axis)] = 1;
  else
    shape.erase(shape.begin() + axis);
  context.set(0, DType::i64, std::move(shape));
  return {};
}

Result<> eval_arg_reduce(EvalContext& context) {
  const ArgReduceAttrs& attrs = context.attrs<ArgReduceAttrs>();
  const Tensor& x = context.input(0);
  int64_t* out = context.output(0).mutable_as<int64_t>();
  const AxisSplit split = split_at(x.dims(), attrs.axis);
  if (is_floating(x.dtype())) {
    find(to_doubles(x), split, attrs, out);
  } else {
    std::vector<int64_t> values = to_ints(x);
    order_bits(x.dtype(), values);
    find(values, split, attrs, out);
  }
  return {};
}

}  // namespace lathe
