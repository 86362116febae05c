// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise.h"

namespace lathe {

Result<> infer_prelu(InferContext& context) {
  LATHE_TRY(require_numeric(context, 0));
  LATHE_TRY(require_same_dtype(context, 0, 1));
  LATHE_ASSIGN(Shape shape, broadcast(context, context.shape(0), context.shape(1)));
  context.set(0, context.dtype(0), std::move(shape));
  return {};
}

Result<> eval_prelu(EvalContext& context) {
  const Tensor &x = context.input(0), &slope = context.input(1);
  Tensor& y = context.output(0);
  if (is_floating(x.dtype())) {
    map_two<double>(x, slope, y, [](double a, double b) { return a < 0 ? a * b : a; });
  } else if (x.dtype() == DType::u64) {
    map_two<int64_t>(x, slope, y, [](int64_t a, int64_t) { return a; });  // nothing is negative
  } else {
    map_two<int64_t>(x, slope, y, [](int64_t a, int64_t b) {
      return a < 0 ? static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)) : a;
    });
  }
  return {};
}

}  // namespace lathe
