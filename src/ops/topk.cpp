// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/rules.h"

namespace lathe {
namespace {

bool above(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }  // NaN is the largest
bool above(int64_t a, int64_t b) { return a > b; }

// The k first of a row's positions, best first; of equals the lower position.
template <class T>
void rank_row(const T* row, int64_t step, int64_t k, bool largest, std::vector<int64_t>& positions) {
  std::iota(positions.begin(), positions.end(), 0);
  std::partial_sort(positions.begin(), positions.begin() + k, positions.end(), [&](int64_t a, int64_t b) {
    const T x = row[a * step], y = row[b * step];
    if (above(x, y)) return largest;
    if (above(y, x)) return !largest;
    return a < b;
  });
}

template <class T>
std::vector<T> evaluate(EvalContext& context, const std::vector<T>& x) {
  const TopkAttrs& attrs = context.attrs<TopkAttrs>();
  const AxisSplit split = split_at(context.input(0).dims(), attrs.axis);
  const int64_t k = context.input(1).at(0);
  std::vector<int64_t> positions(static_cast<size_t>(split.extent));
  std::vector<T> values(static_cast<size_t>(context.output(0).volume()));
  int64_t* indices = context.output(1).mutable_as<int64_t>();
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t r = 0; r < split.inner; ++r) {
      const T* row = x.data() + o * split.extent * split.inner + r;
      rank_row(row, split.inner, k, attrs.largest, positions);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = (o * k + i) * split.inner + r;
        values[at] = row[positions[i] * split.inner];
        indices[at] = positions[i];
      }
    }
  return values;
}

}  // namespace

Result<> infer_topk(InferContext& context) {
  LATHE_TRY(require_numeric(context, 0));
  LATHE_TRY(require_integer(context, 1));
  LATHE_TRY(require_rank(context, 1, 0, 1));
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.attrs<TopkAttrs>().axis, context.rank(0)));
  const std::vector<Expr>* elements = context.elements(1);
  if ((elements && elements->size() != 1) || (context.rank(1) == 1 && !context.assume_equal(context.shape(1)[0], 1)))
    return fail(ErrorCode::shape_mismatch, "k has shape {}, but it must be one number", to_string(context.shape(1)));
  Shape shape = context.shape(0);
  Expr& dim = shape[static_cast<size_t>(axis)];
  const Expr k = elements ? (*elements)[0] : context.new_symbol("k");
  if (!context.assume(Relation::at_most, k, dim) || !context.assume(Relation::at_most, 0, k))
    return fail(ErrorCode::shape_mismatch, "k is {}, but axis {} of input {} has {} elements; choose k from 0 to that",
                k.to_string(), axis, to_string(context.shape(0)), dim.to_string());
  dim = k;
  context.set(0, context.dtype(0), shape);
  context.set(1, DType::i64, std::move(shape));
  return {};
}

Result<> eval_topk(EvalContext& context) {
  const Tensor& x = context.input(0);
  if (is_floating(x.dtype())) {
    from_doubles(evaluate(context, to_doubles(x)), context.output(0));
    return {};
  }
  std::vector<int64_t> values = to_ints(x);
  order_bits(x.dtype(), values);
  values = evaluate(context, values);
  order_bits(x.dtype(), values);
  from_ints(values, context.output(0));
  return {};
}

}  // namespace lathe
