// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {
namespace {

template <class T>
void scan(std::vector<T>& values, const AxisSplit& split, const CumulativeAttrs& attrs) {
  const bool sum = attrs.op == CumulativeOp::sum;
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t r = 0; r < split.inner; ++r) {
      T total = sum ? T{0} : T{1};
      for (int64_t i = 0; i < split.extent; ++i) {
        const int64_t along = attrs.reverse ? split.extent - 1 - i : i;
        T& value = values[(o * split.extent + along) * split.inner + r];
        const T next = sum ? total + value : total * value;
        value = attrs.exclusive ? total : next;
        total = next;
      }
    }
}

Result<> check_axis(InferContext& context) {
  if (!context.assume_equal(volume(context.shape(1)), 1))
    return fail(ErrorCode::shape_mismatch, "axis has shape {}, but it must be one number", to_string(context.shape(1)));
  const std::optional<Ints> axis = context.constant_elements(1);
  if (!axis || axis->empty()) return {};
  LATHE_TRY(normalize_axis((*axis)[0], context.rank(0)));
  return {};
}

}  // namespace

Result<> infer_cumulative(InferContext& context) {
  LATHE_TRY(require_numeric(context, 0));
  LATHE_TRY(require_integer(context, 1));
  LATHE_TRY(require_rank(context, 1, 0, 1));
  LATHE_TRY(check_axis(context));
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

Result<> eval_cumulative(EvalContext& context) {
  const CumulativeAttrs& attrs = context.attrs<CumulativeAttrs>();
  const Tensor& x = context.input(0);
  LATHE_ASSIGN(const int64_t axis, normalize_axis(context.input(1).at(0), x.rank()));
  const AxisSplit split = split_at(x.dims(), axis);
  if (is_floating(x.dtype())) {
    std::vector<double> values = to_doubles(x);
    scan(values, split, attrs);
    from_doubles(values, context.output(0));
  } else {
    const std::vector<int64_t> source = to_ints(x);
    std::vector<uint64_t> values(source.begin(), source.end());  // unsigned arithmetic wraps
    scan(values, split, attrs);
    from_ints(std::vector<int64_t>(values.begin(), values.end()), context.output(0));
  }
  return {};
}

}  // namespace lathe
