// SPDX-License-Identifier: Apache-2.0
// The functions of elements, on blocks of lanes.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/scalars.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace lathe::cpu::LATHE_ISA::math {

#define LATHE_MATH inline
#include "base/scalar_math.inc"
#include "base/scalar_math_f64.inc"
#undef LATHE_MATH
inline double pow(double a, double b) { return ::pow(a, b); }
// What computes in the lane of f32.
inline float abs(float a) { return ::fabsf(a); }
inline float sqrt(float a) { return ::sqrtf(a); }
inline float floor(float a) { return ::floorf(a); }
inline float ceil(float a) { return ::ceilf(a); }
inline float round(float a) { return ::rintf(a); }

}  // namespace lathe::cpu::LATHE_ISA::math

namespace lathe::cpu::LATHE_ISA {
namespace {

using elementwise::Function;
using elementwise::FunctionCall;
using elementwise::Lane;

// Whether lanes of T compute an operation of such traits.
template <class T>
constexpr bool computes(uint32_t traits) {
  if (std::is_integral_v<T>) return traits & (kIntegers | kBooleans);
  return (traits & kReals) && (std::is_same_v<T, double> || (traits & kExact));
}

template <class T, uint32_t kTraits>
using ResultOf = std::conditional_t<(kTraits & kTruth) != 0, int64_t, T>;

template <class T, class R, class F>
void each(const void* const* inputs, int64_t count, void* result, F f) {
  const T *a = static_cast<const T*>(inputs[0]), *b = static_cast<const T*>(inputs[1]);
  R* y = static_cast<R*>(result);
  if constexpr (std::is_invocable_v<F, T>)
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(f(a[i]));
  else
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<R>(f(a[i], b[i]));
}

template <class T>
void compute_integers(const FunctionCall& call, const void* const* inputs, int64_t count, void* result) {
  using word = uint64_t;
  const auto bits = static_cast<word>(call.bits);
  switch (call.function) {
#define LATHE_UNARY(name, traits, formula, integers)                                                    \
  case Function::name:                                                                                  \
    if constexpr (computes<T>(traits)) each<T, T>(inputs, count, result, [](T a) { return integers; }); \
    return;
#define LATHE_BINARY(name, traits, formula, integers)                                                         \
  case Function::name:                                                                                        \
    if constexpr (computes<T>(traits)) each<T, T>(inputs, count, result, [=](T a, T b) { return integers; }); \
    return;
#include "base/scalars.def"
    case Function::clip_integers:
      return each<T, T>(inputs, count, result, [low = static_cast<T>(call.x), high = static_cast<T>(call.y)](T a) {
        return math::at_most(math::at_least(a, low), high);
      });
    default:
      return;
  }
}

template <class T>
void compute_reals(const FunctionCall& call, const void* const* inputs, int64_t count, void* result) {
  using real = T;
  const T x = static_cast<T>(call.x), y = static_cast<T>(call.y);
  switch (call.function) {
#define LATHE_UNARY(name, traits, formula, integers)                                       \
  case Function::name:                                                                     \
    if constexpr (computes<T>(traits))                                                     \
      each<T, ResultOf<T, (traits)>>(inputs, count, result, [=](T a) { return formula; }); \
    return;
#define LATHE_BINARY(name, traits, formula, integers)                                           \
  case Function::name:                                                                          \
    if constexpr (computes<T>(traits))                                                          \
      each<T, ResultOf<T, (traits)>>(inputs, count, result, [=](T a, T b) { return formula; }); \
    return;
#include "base/scalars.def"
    default:
      return;
  }
}

// Activations, whose parameters are the bits of doubles, and prelu.
void activate(const FunctionCall& call, const void* const* inputs, int64_t count, void* result) {
  using real = double;
  double x, y;
  std::memcpy(&x, &call.x, sizeof(x));
  std::memcpy(&y, &call.y, sizeof(y));
  switch (call.function) {
#define LATHE_ACTIVATION(name, parameters, formula) \
  case Function::name:                              \
    return each<double, double>(inputs, count, result, [=](double a) { return formula; });
#include "base/scalars.def"
    case Function::prelu:
      return each<double, double>(inputs, count, result,
                                  [](double a, double b) { return math::select(a < 0, a * b, a); });
    default:
      return compute_reals<double>(call, inputs, count, result);
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
void compute_levels(const FunctionCall& call, const void* const* inputs, int64_t n, void* result) {
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

void compute_elements(const FunctionCall& call, const void* const* inputs, int64_t count, void* result) {
  if (call.function == Function::quantize || call.function == Function::dequantize)
    return call.from == Lane::f32 ? compute_levels<float>(call, inputs, count, result)
                                  : compute_levels<double>(call, inputs, count, result);
  switch (call.from) {
    case Lane::i64:
      return compute_integers<int64_t>(call, inputs, count, result);
    case Lane::u64:
      return compute_integers<uint64_t>(call, inputs, count, result);
    case Lane::f32:
      return compute_reals<float>(call, inputs, count, result);
    case Lane::f64:
      return activate(call, inputs, count, result);
  }
}

}  // namespace lathe::cpu::LATHE_ISA
