// SPDX-License-Identifier: Apache-2.0
// GELUs behind products whose results are 8-bit floats: by a formula that is hardly more exact than these, bounded as
// they are stored, by a quotient that is not exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& gemm_tactic();

namespace {

struct Float8 {
  DType dtype;
  std::string_view rounding;
  int mantissa, least_exponent;
  double largest, scale;
};

// Numbers of 10 bits, of all sizes that have a GELU in f32, and last those that are none.
std::vector<double> numbers(size_t count) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> values;
  for (double a = 0x1p-13; values.size() + 4 < count; a += std::ldexp(1.0, std::ilogb(a) - 10))
    for (const int sign : {1, -1}) values.push_back(sign * a);
  values.insert(values.end(), {0, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()});
  return values;
}

// The quotient by the scale, before it is rounded.
double exact_quotient(double a, const Float8& type) {
  const double exact = a / 2 * std::erfc(-a / std::sqrt(2.0)) / type.scale;
  return std::clamp(exact, -type.largest, type.largest);
}
double unit_of(double quotient, const Float8& type) {  // of the last place
  const int exponent = quotient == 0 ? type.least_exponent : std::max(std::ilogb(quotient), type.least_exponent);
  return std::ldexp(1.0, exponent - type.mantissa);
}
double exact_level(double a, const Float8& type) {
  const double quotient = exact_quotient(a, type), unit = unit_of(quotient, type);
  return std::nearbyint(quotient / unit) * unit;
}

// The largest error of a result, in its last place; `got` are results of the quotients by the scale.
double worst_of(const std::vector<double>& values, const std::vector<double>& got, const Float8& type) {
  double worst = 0;
  for (size_t i = 0; i + 3 < values.size(); ++i) {
    const double want = exact_quotient(values[i], type);
    worst = std::max(worst, std::abs(got[i] - want) / unit_of(want, type));
  }
  return worst;
}

// How many results are none of the number, nor of one that differs from it by half a last place of f16.
int64_t unexplained(const std::vector<double>& values, const std::vector<double>& got, const Float8& type) {
  int64_t count = 0;
  for (size_t i = 0; i + 3 < values.size(); ++i) {
    const double a = values[i];
    count += got[i] != exact_level(a, type) && got[i] != exact_level(a * (1 - 0x1p-12), type) &&
             got[i] != exact_level(a * (1 + 0x1p-12), type);
  }
  return count;
}

// How many results are not those of the number.
int64_t changed(const std::vector<double>& values, const std::vector<double>& got, const Float8& type) {
  int64_t count = 0;
  for (size_t i = 0; i + 3 < values.size(); ++i) count += got[i] != exact_level(values[i], type);
  return count;
}

// A scale by which a level ends a little before the least value of a GELU, which then has the next one.
const double kTieAtLeast = 0.16997120747990369 / 8.5 * (1 - 1e-5);

// The sums are zeros, to which the numbers are added: to half a last place, and a little.
TEST(GemmGelu, ResultsOf8BitFloats) {
  const int64_t m = 128, n = 320, k = 32;
  const std::vector<double> values = numbers(m * n);
  Tensor added = *Tensor::allocate(DType::f32, {m, n});
  from_doubles(values, added);
  MatmulAttrs attrs;
  attrs.transpose_b = true;
  for (const Float8& type : {Float8{DType::f8e4m3fn, "e4m3", 3, -6, 448, 1},
                             {DType::f8e4m3fn, "e4m3", 3, -6, 448, 0x1p-12},
                             {DType::f8e4m3fn, "e4m3", 3, -6, 448, 0x1p-9},
                             {DType::f8e4m3fn, "e4m3", 3, -6, 448, kTieAtLeast},
                             {DType::f8e5m2, "e5m2", 2, -14, 57344, 0x1p-5}}) {
    const auto program =
        fmt::format("in=2; r2=add r0 r1; r3=gelu_erf r2; r4=constant {}; r5=div r3 r4; r6=round_{} r5; out r6",
                    type.scale, type.rounding);
    const Problem problem = op_problem(attrs, {operand(type.dtype, {m, k}), operand(type.dtype, {n, k})},
                                       {operand(type.dtype, {m, n})}, program, {operand(DType::f32, {m, n})});
    std::vector<Tensor> zeros = {*Tensor::allocate(type.dtype, {m, k}), *Tensor::allocate(type.dtype, {n, k})};
    for (Tensor& zero : zeros) from_doubles(std::vector<double>(zero.volume()), zero);
    const auto run = run_kernel(test_backend(), gemm_tactic(), problem, configs_of(gemm_tactic(), problem).at(0), zeros,
                                {added}, {});
    ASSERT_TRUE(run) << run.error().to_string();
    const std::vector<double> got = to_doubles((*run)[0]);
    EXPECT_LE(worst_of(values, got, type), 0.502) << name_of(type.dtype) << " " << type.scale;
    EXPECT_EQ(unexplained(values, got, type), 0) << type.scale;
    EXPECT_LE(changed(values, got, type) * 1000, m * n) << type.scale;
    EXPECT_EQ(got[got.size() - 3], type.largest);
    EXPECT_EQ(got[got.size() - 2], 0);
    EXPECT_TRUE(std::isnan(got.back()));
  }
}

}  // namespace
}  // namespace lathe::cuda
