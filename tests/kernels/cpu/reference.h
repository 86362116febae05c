// SPDX-License-Identifier: Apache-2.0
// Kernels that sum f32, compared with sums in double precision.
#pragma once

#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "device/program.h"
#include "kernels/cpu/kernel_runner.h"

namespace lathe::cpu::testing {

// Each test has its own numbers, whatever ran before it.
inline std::mt19937& generator() {
  static std::mt19937 engine;
  static const ::testing::TestInfo* drawing = nullptr;
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (test != drawing) {
    const std::string name = fmt::format("{}.{}", test->test_suite_name(), test->name());
    std::seed_seq seed(name.begin(), name.end());
    engine.seed(seed);
    drawing = test;
  }
  return engine;
}
inline int64_t pick(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator());
}
template <class T>
T one_of(std::initializer_list<T> values) {
  return *(values.begin() + pick(0, static_cast<int64_t>(values.size()) - 1));
}

// The sum of `count` products of numbers, which lie so many elements apart: four sums, for each addition waits for the
// one before it.
inline double sum_of_products(const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t count) {
  double sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
  for (; count >= 4; count -= 4, a += 4 * a_step, b += 4 * b_step) {
    sum0 += static_cast<double>(a[0]) * static_cast<double>(b[0]);
    sum1 += static_cast<double>(a[a_step]) * static_cast<double>(b[b_step]);
    sum2 += static_cast<double>(a[2 * a_step]) * static_cast<double>(b[2 * b_step]);
    sum3 += static_cast<double>(a[3 * a_step]) * static_cast<double>(b[3 * b_step]);
  }
  for (; count > 0; --count, a += a_step, b += b_step) sum0 += static_cast<double>(*a) * static_cast<double>(*b);
  return sum0 + sum1 + sum2 + sum3;
}

// expected(index) against the kernel's output, to |error| <= absolute + relative * |expected|. What lies between its
// elements must still be as it was.
inline void compare(const TestTensor& output, const std::function<double(const int64_t*)>& expected, double absolute,
                    double relative, const std::string& what) {
  int failures = 0;
  output.for_each([&](const Dims& index, float element) {
    const double want = expected(index.data()), got = static_cast<double>(element);
    if (!(std::abs(got - want) <= absolute + relative * std::abs(want)) && ++failures <= 3)
      ADD_FAILURE() << what << fmt::format(": at [{}] got {}, want {}", fmt::join(index, ", "), got, want);
  });
  ASSERT_EQ(failures, 0) << what;
  ASSERT_TRUE(output.gaps_untouched()) << what << ": wrote outside the output";
}

// The program on a double sum: the sum is rounded to f32 once.
inline double finish(const Program* program, double sum, const std::vector<TestTensor>& operands,
                     const int64_t* index) {
  if (!program) return sum;
  std::vector<float> inputs{static_cast<float>(sum)};
  for (const TestTensor& operand : operands) inputs.push_back(operand.at(index));
  float result = 0;
  evaluate(*program, inputs, {&result, 1});
  return result;
}

}  // namespace lathe::cpu::testing
