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

// Floats, or all of them but the last, or what no float holds.
enum class Factors { floats, floats_but_one, doubles, infinite, zeros, tiny, too_large, nan };

std::array<double, kSide> factors_of(Factors kind, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::array<double, kSide> factors;
  for (double& factor : factors) {
    factor = normal(random);
    if (kind != Factors::doubles) factor = static_cast<float>(factor);
  }
  if (kind == Factors::floats_but_one) factors.back() = 0.1;
  if (kind == Factors::infinite) factors[3] = factors.back() = -std::numeric_limits<double>::infinity();
  if (kind == Factors::zeros) factors[3] = 0, factors.back() = -0.0;
  if (kind == Factors::tiny) factors[3] = 0x1p-149;
  if (kind == Factors::too_large) factors[3] = 0x1p200;
  if (kind == Factors::nan) factors[3] = std::numeric_limits<double>::quiet_NaN();
  return factors;
}

TEST(FloatLines, BecomeColumnsScaledInDoubles) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (const cpu::IsaLevel level : levels()) {
    const ScaledTransposer transposer = scaled_transposer(level);
    EXPECT_EQ(transposer.transpose != nullptr, level == cpu::IsaLevel::avx512);
    EXPECT_EQ(transposer.prepare != nullptr, level == cpu::IsaLevel::avx512);
    if (!transposer.transpose) continue;
    for (const Factors kind : {Factors::floats, Factors::floats_but_one, Factors::doubles, Factors::infinite,
                               Factors::zeros, Factors::tiny, Factors::too_large, Factors::nan})
      for (const auto& [step, past_caches] :
           {std::pair{16, true}, {16, false}, {19, true}, {19, false}, {576, true}, {576, false}}) {
        std::vector<float> lines(static_cast<size_t>(kSide * step));
        const std::array<double, kSide> factors = factors_of(kind, random);
        for (float& each : lines)
          each = static_cast<float>(std::ldexp(normal(random), static_cast<int>(random() % 280) - 150));
        lines[static_cast<size_t>(3 * step + 5)] = std::numeric_limits<float>::infinity();
        // Past the caches go whole cache lines, others anywhere.
        const size_t apart = past_caches ? 32 : 17;
        alignas(64) std::array<float, kSide* 32> written = {};
        std::array<std::byte*, kSide> columns;
        for (size_t i = 0; i < kSide; ++i)  // backwards
          columns[i] = reinterpret_cast<std::byte*>(written.data() + (kSide - 1 - i) * apart);
        LineFactors prepared;
        transposer.prepare(factors.data(), prepared);
        EXPECT_EQ(prepared.are_floats, kind == Factors::floats || kind == Factors::infinite || kind == Factors::zeros ||
                                           kind == Factors::tiny);
        transposer.transpose(reinterpret_cast<const std::byte*>(lines.data()), step * 4, prepared, columns.data(),
                             past_caches);
        for (size_t i = 0; i < kSide; ++i)
          for (size_t line = 0; line < kSide; ++line) {
            const auto wanted = static_cast<float>(lines[line * static_cast<size_t>(step) + i] * factors[line]);
            ASSERT_EQ(std::memcmp(columns[i] + line * 4, &wanted, 4), 0)
                << name_of(level) << " " << static_cast<int>(kind) << " " << line << " " << i;
          }
      }
  }
}

}  // namespace
}  // namespace lathe
