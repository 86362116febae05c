// SPDX-License-Identifier: Apache-2.0
// What the tuner takes for a kernel's right result where a program rounds.
#include "tuning/expected.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ops/rules.h"

namespace lathe {
namespace {

constexpr int64_t kCount = 20000;

std::vector<float> numbers() {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(kCount);
  for (float& value : values) value = normal(random);
  return values;
}

Tensor rounded(const std::vector<float>& values, DType type) {
  Tensor tensor = *Tensor::allocate(type, {kCount});
  from_doubles(std::vector<double>(values.begin(), values.end()), tensor);
  return tensor;
}

// What the program makes of numbers.
Tensor results_of(const Program& program, const std::vector<float>& values) {
  Tensor results = *Tensor::allocate(DType::f32, {kCount});
  for (int64_t i = 0; i < kCount; ++i) evaluate(program, {&values[i], 1}, {results.mutable_as<float>() + i, 1});
  return results;
}

// 8-bit floats of numbers that kernels may round to a type before.
Expected levels_of(const std::vector<float>& values, DType type) {
  const Program program = *parse_program("in=1; r1=constant 0.02; r2=div r0 r1; r3=round_e4m3 r2; out r3");
  return {results_of(program, values), program, {rounded(values, DType::f32)}, {1e-3f}, {type}};
}

std::vector<float> rounded_to(DType type, const std::vector<float>& values) {
  const Tensor tensor = rounded(values, type);
  std::vector<float> kept(kCount);
  for (int64_t i = 0; i < kCount; ++i) kept[i] = static_cast<float>(tensor.at_double(i));
  return kept;
}

int64_t differences(const Tensor& a, const Tensor& b) {
  int64_t count = 0;
  for (int64_t i = 0; i < kCount; ++i) count += a.as<float>()[i] != b.as<float>()[i];
  return count;
}

TEST(Expected, NumbersOf16BitsMayBeRoundedBeforeTheyBecomeLevels) {
  const std::vector<float> values = numbers();
  for (const DType type : {DType::f16, DType::bf16}) {
    const std::vector<float> kept = rounded_to(type, values);
    const Expected expected = levels_of(values, type), of_kept = levels_of(kept, type);
    EXPECT_GT(differences(of_kept.values, expected.values), kCount / 500);  // more than ties may be
    EXPECT_TRUE(agrees(of_kept.values, expected, 0, 0));
    EXPECT_TRUE(agrees(expected.values, of_kept, 0, 0));
    EXPECT_TRUE(agrees(expected.values, expected, 0, 0));
    EXPECT_FALSE(agrees(of_kept.values, levels_of(values, DType::f32), 0, 0));  // sums of floats
  }
}

// By as much as another place, or to the wrong side.
TEST(Expected, NumbersThatAreOffAreNone) {
  const std::vector<float> values = numbers();
  const Expected expected = levels_of(values, DType::f16);
  std::vector<float> moved = values;
  for (float& value : moved) value += std::ldexp(1.5f, std::max(std::ilogb(value), -14) - 10);
  EXPECT_FALSE(agrees(results_of(expected.program, moved), expected, 0, 0));
  Tensor wrong = rounded(values, DType::f32);
  std::memcpy(wrong.mutable_data(), expected.values.data(), kCount * sizeof(float));
  for (int64_t i = 0; i < kCount; i += 100) wrong.mutable_as<float>()[i] *= 1.125f;
  EXPECT_FALSE(agrees(wrong, expected, 0, 0));
}

}  // namespace
}  // namespace lathe
