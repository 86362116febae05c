// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/level_quotient.h"

#include <fmt/format.h>

#include <cmath>

#include "kernels/cuda/program_lines.h"

namespace lathe::cuda {
namespace {

// 1 / scale as the sum of two floats of one sign, so that both products of infinity have that.
struct Reciprocal {
  float high, low;
  explicit Reciprocal(float scale) : high(1 / scale) {
    const double exact = 1 / static_cast<double>(scale);
    if (static_cast<double>(high) > exact) high = std::nextafter(high, 0.0f);
    low = static_cast<float>(exact - static_cast<double>(high));
  }
};

// Both quotients grow with x, and are as far from -x as from x: where they are rounded alike beside each middle between
// two integers, they are everywhere.
bool is_rounded_alike(float scale, const Reciprocal& reciprocal, float most) {
  constexpr int kBeside = 4;  // floats on either side: further ones are on the same side of the middle in any case
  for (float middle = 0.5f; middle <= most + 1; ++middle) {
    float x = middle * scale;
    for (int i = 0; i < kBeside; ++i) x = std::nextafter(x, 0.0f);
    for (int i = 0; i <= 2 * kBeside; ++i, x = std::nextafter(x, HUGE_VALF))
      if (std::nearbyint(x / scale) != std::nearbyint(std::fma(x, reciprocal.high, x * reciprocal.low))) return false;
  }
  return true;
}

}  // namespace

LevelQuotient::LevelQuotient(float scale, float most) : scale_(scale) {
  constexpr float kMost = 1024;
  divides_any_ =
      most <= kMost && std::isfinite(scale * (kMost + 2)) && is_rounded_alike(scale, Reciprocal(scale), most);
}

std::string LevelQuotient::of(std::string_view x) const {
  if (!divides_any_) return fmt::format("math::quotient_within({}, {}, {})", x, literal(scale_), literal(1 / scale_));
  const Reciprocal reciprocal(scale_);
  if (reciprocal.low == 0) return fmt::format("{} * {}", x, literal(reciprocal.high));
  return fmt::format("math::quotient_by_parts({}, {}, {})", x, literal(reciprocal.high), literal(reciprocal.low));
}

}  // namespace lathe::cuda
