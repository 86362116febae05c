// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/number_text.h"
#include "ops/op.h"

namespace lathe {

Result<> infer_to_text(InferContext& context) {
  Shape shape = context.shape(0);
  shape.push_back(text_width(context.dtype(0)));
  context.set(0, DType::u8, std::move(shape));
  return {};
}

Result<> eval_to_text(EvalContext& context) {
  const Tensor& x = context.input(0);
  auto* to = context.output(0).mutable_as<uint8_t>();
  const auto width = static_cast<size_t>(text_width(x.dtype()));
  std::fill_n(to, context.output(0).bytes(), uint8_t{0});
  return dispatch(x.dtype(), [&](auto zero) -> Result<> {
    using T = decltype(zero);
    for (int64_t i = 0; i < x.volume(); ++i, to += width) {
      const std::string text = text_of<T>(x.as<T>()[i]);
      LATHE_CHECK(text.size() <= width);
      std::ranges::copy(text, to);
    }
    return {};
  });
}

}  // namespace lathe
