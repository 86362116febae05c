// SPDX-License-Identifier: Apache-2.0
// The functions of elements, on blocks of lanes.
#include <cmath>
#include <cstring>

#include "kernels/cpu/elementwise/elementwise.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using elementwise::Call;
using elementwise::Function;
using elementwise::Lane;

template <class L, class R, class F>
void each(const void* a, void* y, int64_t count, F f) {
  const L* from = static_cast<const L*>(a);
  R* to = static_cast<R*>(y);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<R>(f(from[i]));
}

template <class L, class R, class F>
void each(const void* a, const void* b, void* y, int64_t count, F f) {
  const L *left = static_cast<const L*>(a), *right = static_cast<const L*>(b);
  R* to = static_cast<R*>(y);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<R>(f(left[i], right[i]));
}

// Division by zero gives 0, and the one overflowing quotient wraps.
template <class L>
L quotient(L a, L b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<L>)
    if (b == -1) return static_cast<L>(-static_cast<uint64_t>(a));
  return a / b;
}

template <class L>
L rest(L a, L b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<L>)
    if (b == -1) return 0;
  return a % b;
}

template <class L>
bool signs_differ(L rest, L b) {
  return rest != 0 && (rest < 0) != (b < 0);
}

template <class L>
L power(L base, L exponent) {
  if constexpr (std::is_signed_v<L>)
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;  // 1 / base^n, truncated
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (auto n = static_cast<uint64_t>(exponent); n; n >>= 1, square *= square)
    if (n & 1) result *= square;
  return static_cast<L>(result);
}

double floored_fmod(double a, double b) {
  const double rest = std::fmod(a, b);
  return signs_differ(rest, b) ? rest + b : rest == 0 ? std::copysign(0.0, b) : rest;
}

// What integers and floats have in common; false when it is none of these.
template <class L>
bool compute_common(Function function, const void* a, const void* b, int64_t n, void* y) {
  switch (function) {
    case Function::equal:
      each<L, int64_t>(a, b, y, n, [](L p, L q) { return p == q; });
      return true;
    case Function::greater:
      each<L, int64_t>(a, b, y, n, [](L p, L q) { return p > q; });
      return true;
    case Function::less:
      each<L, int64_t>(a, b, y, n, [](L p, L q) { return p < q; });
      return true;
    case Function::greater_equal:
      each<L, int64_t>(a, b, y, n, [](L p, L q) { return p >= q; });
      return true;
    case Function::less_equal:
      each<L, int64_t>(a, b, y, n, [](L p, L q) { return p <= q; });
      return true;
    case Function::max:
      each<L, L>(a, b, y, n, [](L p, L q) { return p != p || p > q ? p : q; });  // NaN wins
      return true;
    case Function::min:
      each<L, L>(a, b, y, n, [](L p, L q) { return p != p || p < q ? p : q; });
      return true;
    case Function::cast:
      each<L, L>(a, y, n, [](L p) { return p; });
      return true;
    default:
      return false;
  }
}

template <class L>
void compute_integers(const Call& call, const void* a, const void* b, int64_t n, void* y) {
  using U = uint64_t;  // it wraps
  const auto bits = static_cast<U>(call.bits);
  switch (call.function) {
    case Function::add:
      return each<U, U>(a, b, y, n, [](U p, U q) { return p + q; });
    case Function::sub:
      return each<U, U>(a, b, y, n, [](U p, U q) { return p - q; });
    case Function::mul:
      return each<U, U>(a, b, y, n, [](U p, U q) { return p * q; });
    case Function::div:
      return each<L, L>(a, b, y, n, [](L p, L q) { return quotient(p, q); });
    case Function::floor_div:
      return each<L, L>(a, b, y, n, [](L p, L q) { return quotient(p, q) - (signs_differ(rest(p, q), q) ? 1 : 0); });
    case Function::mod:
      return each<L, L>(a, b, y, n, [](L p, L q) {
        const L left = rest(p, q);
        return signs_differ(left, q) ? left + q : left;
      });
    case Function::fmod:
      return each<L, L>(a, b, y, n, [](L p, L q) { return rest(p, q); });
    case Function::pow:
      return each<L, L>(a, b, y, n, [](L p, L q) { return power(p, q); });
    case Function::logical_and:
      return each<L, L>(a, b, y, n, [](L p, L q) { return (p != 0) & (q != 0); });
    case Function::logical_or:
      return each<L, L>(a, b, y, n, [](L p, L q) { return (p != 0) | (q != 0); });
    case Function::logical_xor:
      return each<L, L>(a, b, y, n, [](L p, L q) { return (p != 0) ^ (q != 0); });
    case Function::bitwise_and:
      return each<U, U>(a, b, y, n, [](U p, U q) { return p & q; });
    case Function::bitwise_or:
      return each<U, U>(a, b, y, n, [](U p, U q) { return p | q; });
    case Function::bitwise_xor:
      return each<U, U>(a, b, y, n, [](U p, U q) { return p ^ q; });
    case Function::shift_left:
      return each<U, U>(a, b, y, n, [=](U p, U q) { return q >= bits ? 0 : p << q; });
    case Function::shift_right:
      return each<L, L>(a, b, y, n, [=](L p, L q) { return static_cast<U>(q) >= bits ? 0 : p >> q; });
    case Function::abs:
      return each<L, L>(a, y, n, [](L p) { return p < 0 ? static_cast<L>(-static_cast<U>(p)) : p; });
    case Function::neg:
      return each<U, U>(a, y, n, [](U p) { return -p; });
    case Function::sign:
      return each<L, L>(a, y, n, [](L p) { return (p > 0) - (p < 0); });
    case Function::logical_not:
      return each<L, L>(a, y, n, [](L p) { return p == 0; });
    case Function::bitwise_not:
      return each<U, U>(a, y, n, [](U p) { return ~p; });
    case Function::clip: {
      const L low = static_cast<L>(call.x), high = static_cast<L>(call.y);
      return each<L, L>(a, y, n, [=](L p) {
        const L raised = p < low ? low : p;
        return raised > high ? high : raised;
      });
    }
    default:
      return;  // for floats only
  }
}

template <class L>
bool compute_floats(const Call& call, const void* a, const void* b, int64_t n, void* y) {
  const bool negative = call.x != 0, positive = call.y != 0;
  switch (call.function) {
    case Function::add:
      each<L, L>(a, b, y, n, [](L p, L q) { return p + q; });
      return true;
    case Function::sub:
      each<L, L>(a, b, y, n, [](L p, L q) { return p - q; });
      return true;
    case Function::mul:
      each<L, L>(a, b, y, n, [](L p, L q) { return p * q; });
      return true;
    case Function::div:
      each<L, L>(a, b, y, n, [](L p, L q) { return p / q; });
      return true;
    case Function::sqrt:
      each<L, L>(a, y, n, [](L p) { return std::sqrt(p); });
      return true;
    case Function::recip:
      each<L, L>(a, y, n, [](L p) { return 1 / p; });
      return true;
    case Function::abs:
      each<L, L>(a, y, n, [](L p) { return std::fabs(p); });
      return true;
    case Function::neg:
      each<L, L>(a, y, n, [](L p) { return -p; });
      return true;
    case Function::ceil:
      each<L, L>(a, y, n, [](L p) { return std::ceil(p); });
      return true;
    case Function::floor:
      each<L, L>(a, y, n, [](L p) { return std::floor(p); });
      return true;
    case Function::round:
      each<L, L>(a, y, n, [](L p) { return std::nearbyint(p); });
      return true;
    case Function::sign:
      each<L, L>(a, y, n, [](L p) { return p != p ? p : static_cast<L>((p > 0) - (p < 0)); });
      return true;
    case Function::is_nan:
      each<L, int64_t>(a, y, n, [](L p) { return p != p; });
      return true;
    case Function::is_inf:
      each<L, int64_t>(a, y, n, [=](L p) { return std::isinf(p) && (p > 0 ? positive : negative); });
      return true;
    default:
      return false;
  }
}

template <double (*kFunction)(double)>
void each_double(const void* a, int64_t n, void* y) {
  each<double, double>(a, y, n, [](double p) { return kFunction(p); });
}

// What the library's functions of doubles compute.
void compute_doubles(Function function, const void* a, const void* b, int64_t n, void* y) {
  switch (function) {
    case Function::floor_div:
      return each<double, double>(a, b, y, n, [](double p, double q) { return std::floor(p / q); });
    case Function::mod:
      return each<double, double>(a, b, y, n, [](double p, double q) { return floored_fmod(p, q); });
    case Function::fmod:
      return each<double, double>(a, b, y, n, [](double p, double q) { return std::fmod(p, q); });
    case Function::pow:
      return each<double, double>(a, b, y, n, [](double p, double q) { return std::pow(p, q); });
    case Function::exp:
      return each_double<std::exp>(a, n, y);
    case Function::log:
      return each_double<std::log>(a, n, y);
    case Function::sin:
      return each_double<std::sin>(a, n, y);
    case Function::cos:
      return each_double<std::cos>(a, n, y);
    case Function::tan:
      return each_double<std::tan>(a, n, y);
    case Function::sinh:
      return each_double<std::sinh>(a, n, y);
    case Function::cosh:
      return each_double<std::cosh>(a, n, y);
    case Function::asin:
      return each_double<std::asin>(a, n, y);
    case Function::acos:
      return each_double<std::acos>(a, n, y);
    case Function::atan:
      return each_double<std::atan>(a, n, y);
    case Function::asinh:
      return each_double<std::asinh>(a, n, y);
    case Function::acosh:
      return each_double<std::acosh>(a, n, y);
    case Function::atanh:
      return each_double<std::atanh>(a, n, y);
    case Function::erf:
      return each_double<std::erf>(a, n, y);
    default:
      return;
  }
}

// The quotient rounded to f16 or bf16. Not back by BFloat16's conversion: it is inline, so that the linker could keep
// the copy compiled here, for this ISA level, for code that runs at every level.
float rounded(DType type, float quotient) {
  if (type == DType::f16) return static_cast<float>(Half(quotient));
  const uint32_t bits = static_cast<uint32_t>(BFloat16(quotient).bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

template <class L>
void compute_levels(const Call& call, const void* const* inputs, int64_t n, void* result) {
  const L *x = static_cast<const L*>(inputs[0]), *scale = static_cast<const L*>(inputs[1]);
  const L* zero = static_cast<const L*>(inputs[2]);
  L* y = static_cast<L*>(result);
  if (call.function == Function::dequantize) {
    if (zero)
      for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - zero[i]) * scale[i];
    else
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale[i];
    return;
  }
  if (call.type == DType::f16 || call.type == DType::bf16)
    for (int64_t i = 0; i < n; ++i) y[i] = rounded(call.type, static_cast<float>(x[i] / scale[i]));
  else
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / scale[i];
  const L low = static_cast<L>(call.x), high = static_cast<L>(call.y);
  for (int64_t i = 0; i < n; ++i) {
    const L level = std::nearbyint(y[i]) + (zero ? zero[i] : 0);
    y[i] = level < low ? low : level > high ? high : level;
  }
}

}  // namespace

void compute_elements(const Call& call, const void* const* inputs, int64_t count, void* result) {
  const void *a = inputs[0], *b = inputs[1];
  if (call.function == Function::quantize || call.function == Function::dequantize)
    return call.from == Lane::f32 ? compute_levels<float>(call, inputs, count, result)
                                  : compute_levels<double>(call, inputs, count, result);
  switch (call.from) {
    case Lane::i64:
      if (!compute_common<int64_t>(call.function, a, b, count, result))
        compute_integers<int64_t>(call, a, b, count, result);
      return;
    case Lane::u64:
      if (!compute_common<uint64_t>(call.function, a, b, count, result))
        compute_integers<uint64_t>(call, a, b, count, result);
      return;
    case Lane::f32:
      if (!compute_common<float>(call.function, a, b, count, result)) compute_floats<float>(call, a, b, count, result);
      return;
    case Lane::f64:
      if (!compute_common<double>(call.function, a, b, count, result) &&
          !compute_floats<double>(call, a, b, count, result))
        compute_doubles(call.function, a, b, count, result);
      return;
  }
}

}  // namespace lathe::cpu::LATHE_ISA
