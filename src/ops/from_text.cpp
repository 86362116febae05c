// SPDX-License-Identifier: Apache-2.0
#include "ops/number_text.h"
#include "ops/rules.h"

namespace lathe {

Result<> infer_from_text(InferContext& context) {
  LATHE_TRY(require_rank(context, 0, 1, INT_MAX));
  const DType to = context.attrs<FromTextAttrs>().to;
  if (context.dtype(0) != DType::u8 || is_storage_only(to))
    return fail(ErrorCode::type_mismatch,
                "from_text: x is {} and becomes {}, but must be bytes, u8, that become a type that ops compute with",
                name_of(context.dtype(0)), name_of(to));
  Shape shape = context.shape(0);
  shape.pop_back();
  context.set(0, to, std::move(shape));
  return {};
}

Result<> eval_from_text(EvalContext& context) {
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const auto width = static_cast<size_t>(x.dims().back());
  const auto* row = reinterpret_cast<const char*>(x.data());
  return dispatch(y.dtype(), [&](auto zero) -> Result<> {
    using T = decltype(zero);
    for (int64_t i = 0; i < y.volume(); ++i, row += width) {
      const std::string_view text = std::string_view(row, width).substr(0, std::string_view(row, width).find('\0'));
      const std::optional<T> number = number_of<T>(text);
      if (!number)
        return fail(ErrorCode::execution_failed, "from_text: string {}, '{}', is no number of type {}", i,
                    text.substr(0, 64), name_of(y.dtype()));
      y.mutable_as<T>()[i] = *number;
    }
    return {};
  });
}

}  // namespace lathe
