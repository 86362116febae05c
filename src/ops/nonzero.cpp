// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {

Result<> infer_nonzero(InferContext& context) {
  const Expr count = context.new_symbol("nonzero_count");
  context.assume(Relation::at_most, count, volume(context.shape(0)));
  context.set(0, DType::i64, {context.rank(0), count});
  return {};
}

Result<> eval_nonzero(EvalContext& context) {
  const Tensor& input = context.input(0);
  Ints found;  // flat positions
  dispatch(input.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* values = input.as<T>();
    for (int64_t i = 0; i < input.volume(); ++i) {
      if constexpr (std::is_class_v<T>) {
        if (static_cast<float>(values[i]) != 0) found.push_back(i);
      } else {
        if (values[i] != 0) found.push_back(i);
      }
    }
  });
  const int64_t count = static_cast<int64_t>(found.size());
  LATHE_TRY(context.allocate(0, {input.rank(), count}));
  int64_t* out = context.output(0).mutable_as<int64_t>();
  const Dims strides = row_major_strides(input.dims());
  for (size_t d = 0; d < strides.size(); ++d)
    for (int64_t position : found) *out++ = position / strides[d] % input.dims()[d];
  return {};
}

}  // namespace lathe
