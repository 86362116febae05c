// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/float_blocks.h"
#include "ops/narrowing.h"
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

// What f8e8m0, which rounds up, is to be given instead of `value` to round it otherwise.
double round_scale(double value, ScaleRounding rounding) {
  if (rounding == ScaleRounding::up || value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [1/2, 1)
  const bool up = rounding == ScaleRounding::nearest && fraction >= 0.75;
  return std::ldexp(1.0, up ? exponent : exponent - 1);
}

void write_cast(const CastAttrs& attrs, std::span<double> values, int64_t begin, Tensor& y) {
  if (attrs.to == DType::f8e8m0)
    for (double& value : values) value = round_scale(value, attrs.scale_rounding);
  encode_doubles(values, begin, y, attrs.saturate);
}

// On processors without instructions for it.
template <class T>
bool narrow_each(const float* from, int64_t count, std::byte* result) {
  T* to = reinterpret_cast<T*>(result);
  bool is_large = false;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = T(from[i]);
    is_large |= !std::isfinite(static_cast<float>(to[i]));
  }
  return is_large;
}

}  // namespace

bool narrow(const float* from, int64_t count, DType to, std::byte* result) {
  if (const NarrowFloats lanes = narrow_floats(to, cpu::isa_level())) return lanes(from, count, nullptr, result);
  return (to == DType::f16 ? narrow_each<Half> : narrow_each<BFloat16>)(from, count, result);
}

Result<> infer_cast(InferContext& context) {
  const DType to = context.attrs<CastAttrs>().to;
  context.set(0, to, context.shape(0));
  const std::vector<Expr>* elements = context.partial_elements(0);
  if (!elements || !is_integral(context.dtype(0)) || !is_integral(to)) return {};
  std::vector<Expr> out;
  for (const Expr& element : *elements) {
    const std::optional<int64_t> value = element.as_constant();
    out.push_back(value ? Expr(wrap_to(to, *value)) : may_hold_symbols(to) ? element : Expr::invalid());
  }
  context.set_elements(0, std::move(out));
  return {};
}

// Integers drop high bits, or convert to floating types with one rounding; other sources, and what becomes an 8- or
// 4-bit float, go through double, which holds each of them exactly. (Of 64-bit integers it drops bits that those lack.)
Result<> eval_cast(EvalContext& context) {
  const auto& attrs = context.attrs<CastAttrs>();
  const Tensor& x = context.input(0);
  Tensor& y = context.output(0);
  if (x.dtype() == DType::f32 && is_narrowed_to(y.dtype())) {
    narrow(x.as<float>(), x.volume(), y.dtype(), y.mutable_as<std::byte>());
    return {};
  }
  const bool in_doubles = !is_integral(x.dtype()) || is_storage_only(y.dtype());
  const int64_t count = x.volume();
  constexpr int64_t kBlock = 512;
  std::array<int64_t, kBlock> ints;
  std::array<double, kBlock> doubles;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const auto size = static_cast<size_t>(std::min(kBlock, count - begin));
    if (in_doubles) {
      read_doubles(x, begin, {doubles.data(), size});
      write_cast(attrs, {doubles.data(), size}, begin, y);
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
