// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "ops/rules.h"

namespace lathe {

Result<> infer_eye_like(InferContext& context) {
  LATHE_TRY(require_rank(context, 0, 2, 2));
  context.set(0, context.attrs<EyeLikeAttrs>().dtype, context.shape(0));
  return {};
}

Result<> eval_eye_like(EvalContext& context) {
  Tensor& output = context.output(0);
  const int64_t rows = output.dims()[0], columns = output.dims()[1];
  const int64_t k = std::clamp(context.attrs<EyeLikeAttrs>().k, -rows, columns);
  std::memset(output.mutable_data(), 0, output.bytes());
  dispatch(output.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* values = output.mutable_as<T>();
    for (int64_t r = std::max<int64_t>(0, -k); r < rows && r + k < columns; ++r) values[r * columns + r + k] = T(1.0f);
  });
  return {};
}

}  // namespace lathe
