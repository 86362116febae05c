// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ops/rules.h"

namespace lathe {
namespace {

// u64 contents (as int64 bits) to a floating type.
void write_unsigned(std::span<const int64_t> values, int64_t begin, Tensor& y) {
  dispatch(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* target = y.mutable_as<T>() + begin;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<uint64_t>(values[i]);
      if constexpr (std::is_class_v<T>)
        target[i] = round_to<T>(static_cast<double>(value));
      else if constexpr (std::is_floating_point_v<T>)
        target[i] = static_cast<T>(value);
    }
  });
}

}  // namespace

Result<> infer_cast(InferContext& context) {
  const DType to = context.attrs<CastAttrs>().to;
  context.set(0, to, context.shape(0));
  const std::vector<Expr>* elements = context.elements(0);
  if (!elements || is_floating(context.dtype(0)) || is_floating(to)) return {};
  std::vector<Expr> out;
  for (const Expr& element : *elements) {
    const std::optional<int64_t> value = element.as_constant();
    if (!value && !may_hold_symbols(to)) return {};
    out.push_back(value ? Expr(wrap_to(to, *value)) : element);
  }
  context.set_elements(0, std::move(out));
  return {};
}

// Integers drop high bits, or convert to floating types with one rounding; floating sources go through double, which
// holds each of them exactly.
Result<> eval_cast(EvalContext& context) {
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  const int64_t count = x.volume();
  constexpr int64_t kBlock = 512;
  std::array<int64_t, kBlock> ints;
  std::array<double, kBlock> doubles;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const auto size = static_cast<size_t>(std::min(kBlock, count - begin));
    if (is_floating(x.dtype())) {
      read_doubles(x, begin, {doubles.data(), size});
      write_doubles({doubles.data(), size}, begin, y);
      continue;
    }
    read_ints(x, begin, {ints.data(), size});
    if (x.dtype() == DType::u64 && is_floating(y.dtype()))
      write_unsigned({ints.data(), size}, begin, y);
    else
      write_ints({ints.data(), size}, begin, y);
  }
  return {};
}

}  // namespace lathe
