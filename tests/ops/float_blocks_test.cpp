// SPDX-License-Identifier: Apache-2.0
#include "ops/float_blocks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace lathe {
namespace {

// Every sign, exponent and leading bits of mantissas, and what is about half a step of either type beside them.
std::vector<float> all_kinds() {
  std::vector<float> numbers;
  for (uint32_t high = 0; high < (1u << 20); ++high)
    for (const uint32_t low : {0x000u, 0x001u, 0x7ffu, 0x800u, 0x801u, 0xfffu})
      numbers.push_back(std::bit_cast<float>(high << 12 | low));
  return numbers;
}

std::vector<cpu::IsaLevel> levels() {
  std::vector<cpu::IsaLevel> levels;
  for (const auto level : {cpu::IsaLevel::baseline, cpu::IsaLevel::avx2, cpu::IsaLevel::avx512})
    if (cpu::supports(level)) levels.push_back(level);
  return levels;
}

// Calls f(narrow) for each level that has instructions for it.
template <class T, class F>
void for_each_level(const F& f) {
  for (const cpu::IsaLevel level : levels()) {
    SCOPED_TRACE(name_of(level));
    const NarrowFloats narrow = narrow_floats(dtype_of<T>(), level);
    EXPECT_EQ(narrow != nullptr, level >= cpu::IsaLevel::avx2);
    if (narrow) f(narrow);
  }
}

template <class T>
bool narrow_to(NarrowFloats narrow, const std::vector<float>& numbers, const double* factor, std::vector<T>& made) {
  return narrow(numbers.data(), static_cast<int64_t>(numbers.size()), factor,
                reinterpret_cast<std::byte*>(made.data()));
}

// As they are, and multiplied.
template <class T>
void expect_bits_of_conversions() {
  const std::vector<float> numbers = all_kinds();
  for_each_level<T>([&](NarrowFloats narrow) {
    for (const double factor : {1.0, 1.37, -3e-5}) {
      std::vector<T> made(numbers.size());
      EXPECT_TRUE(narrow_to(narrow, numbers, factor == 1 ? nullptr : &factor, made));
      size_t others = 0;
      for (size_t i = 0; i < numbers.size(); ++i)
        others += made[i].bits != T(static_cast<float>(numbers[i] * factor)).bits;
      EXPECT_EQ(others, 0u) << factor;
    }
  });
}

TEST(FloatBlocks, BecomeHalves) { expect_bits_of_conversions<Half>(); }
TEST(FloatBlocks, BecomeBFloat16) { expect_bits_of_conversions<BFloat16>(); }

template <class T>
void expect_tells_of_infinities() {
  for_each_level<T>([&](NarrowFloats narrow) {
    for (const float number :
         {1.0f, 65504.0f, 65519.99f, 65520.0f, -65520.0f, 3.3895314e38f, 3.3961776e38f, -3.4e38f, -INFINITY, NAN})
      for (const size_t count : {1, 7, 8, 9, 16, 23})
        for (const size_t at : {size_t{0}, count / 2, count - 1}) {
          std::vector<float> numbers(count, 0.5f);
          numbers[at] = number;
          std::vector<T> made(count + 1);
          EXPECT_EQ(narrow_to(narrow, numbers, nullptr, made), !std::isfinite(static_cast<float>(T(number))))
              << number << " at " << at << " of " << count;
          EXPECT_EQ(made[at].bits, T(number).bits);
          EXPECT_EQ(made.back().bits, 0) << "behind the last of " << count;
        }
    const double factor = 2;
    std::vector<T> made(1);
    EXPECT_TRUE(narrow_to(narrow, {2e38f}, &factor, made)) << "the product is no float";
  });
}

TEST(FloatBlocks, TellOfWhatHalfCannotHold) { expect_tells_of_infinities<Half>(); }
TEST(FloatBlocks, TellOfWhatBFloat16CannotHold) { expect_tells_of_infinities<BFloat16>(); }

TEST(FloatBlocks, AreNarrowedToTwoTypesAlone) {
  for (const cpu::IsaLevel level : levels())
    for (const DType type : {DType::f32, DType::f64, DType::i8}) EXPECT_EQ(narrow_floats(type, level), nullptr);
}

TEST(FloatBlocks, AreScaledInDoubles) {
  const std::vector<float> numbers = all_kinds();
  for (const cpu::IsaLevel level : levels())
    for (const double factor : {1 / 3.0, -1e30}) {
      std::vector<float> made(numbers.size() - 5);
      scale_floats(level)(numbers.data() + 5, static_cast<int64_t>(made.size()), factor, made.data());
      size_t others = 0;
      for (size_t i = 0; i < made.size(); ++i) {
        const auto wanted = static_cast<float>(numbers[i + 5] * factor);
        others += std::bit_cast<uint32_t>(made[i]) != std::bit_cast<uint32_t>(wanted);
      }
      EXPECT_EQ(others, 0u) << name_of(level) << " " << factor;
    }
}

}  // namespace
}  // namespace lathe
