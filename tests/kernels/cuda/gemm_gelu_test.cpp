// SPDX-License-Identifier: Apache-2.0
// GELUs behind products whose results are 8-bit floats: bounded as they are stored, by a quotient that is not exact.
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

// The largest error of a result, in its last place; `got` are results of the quotients by the scale.
double worst_of(const std::vector<double>& values, const std::vector<double>& got, const Float8& type) {
  double worst = 0;
  for (size_t i = 0; i + 3 < values.size(); ++i) {
    const double exact = values[i] / 2 * std::erfc(-values[i] / std::sqrt(2.0)) / type.scale;
    const double want = std::clamp(exact, -type.largest, type.largest);
    const int exponent = want == 0 ? type.least_exponent : std::max(std::ilogb(want), type.least_exponent);
    worst = std::max(worst, std::abs(got[i] - want) / std::ldexp(1.0, exponent - type.mantissa));
  }
  return worst;
}

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
    EXPECT_EQ(got[got.size() - 3], type.largest);
    EXPECT_EQ(got[got.size() - 2], 0);
    EXPECT_TRUE(std::isnan(got.back()));
  }
}

}  // namespace
}  // namespace lathe::cuda
