// SPDX-License-Identifier: Apache-2.0
// At every level of instruction sets that this processor has.
#include "ops/float_lines.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace lathe {
namespace {

constexpr int64_t kSide = 16;

std::vector<cpu::IsaLevel> levels() {
  std::vector<cpu::IsaLevel> levels;
  for (const auto level : {cpu::IsaLevel::baseline, cpu::IsaLevel::avx2, cpu::IsaLevel::avx512})
    if (cpu::supports(level)) levels.push_back(level);
  return levels;
}

TEST(FloatLines, BecomeColumnsScaledInDoubles) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (const cpu::IsaLevel level : levels()) {
    const TransposeScaled transpose = transpose_scaled(level);
    EXPECT_EQ(transpose != nullptr, level == cpu::IsaLevel::avx512);
    if (!transpose) continue;
    for (const int64_t step : {16, 19, 576})
      for (const bool past_caches : {false, true}) {
        std::vector<float> lines(static_cast<size_t>(kSide * step));
        std::array<double, kSide> factors;
        for (float& each : lines)
          each = static_cast<float>(std::ldexp(normal(random), static_cast<int>(random() % 280) - 150));
        lines[static_cast<size_t>(3 * step + 5)] = std::numeric_limits<float>::infinity();
        for (double& factor : factors) factor = normal(random);
        // Past the caches go whole cache lines, others anywhere.
        const size_t apart = past_caches ? 32 : 17;
        alignas(64) std::array<float, kSide* 32> written = {};
        std::array<std::byte*, kSide> columns;
        for (size_t i = 0; i < kSide; ++i)  // backwards
          columns[i] = reinterpret_cast<std::byte*>(written.data() + (kSide - 1 - i) * apart);
        transpose(reinterpret_cast<const std::byte*>(lines.data()), step * 4, factors.data(), columns.data(),
                  past_caches);
        for (size_t i = 0; i < kSide; ++i)
          for (size_t line = 0; line < kSide; ++line) {
            const auto wanted = static_cast<float>(lines[line * static_cast<size_t>(step) + i] * factors[line]);
            ASSERT_EQ(std::memcmp(columns[i] + line * 4, &wanted, 4), 0) << name_of(level) << " " << line << " " << i;
          }
      }
  }
}

}  // namespace
}  // namespace lathe
