// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/resize/samples.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lathe::cpu {
namespace {

constexpr int kMaxTaps = 4;

double source_position(const SampleRule& rule, double input, double output, double scale, double y) {
  using Coordinates = SampleRule::Coordinates;
  const double exact = scale * input;  // the output's extent before it was rounded
  switch (rule.coordinates) {
    case Coordinates::align_corners:
      return exact == 1 ? 0 : y * (input - 1) / (exact - 1);
    case Coordinates::asymmetric:
      return y / scale;
    case Coordinates::tf_half_pixel_for_nn:
      return (y + 0.5) / scale;
    case Coordinates::pytorch_half_pixel:
      return exact == 1 ? -0.5 : (y + 0.5) / scale - 0.5;
    case Coordinates::half_pixel:
      return (y + 0.5) / scale - 0.5;
    case Coordinates::half_pixel_symmetric:
      return input / 2 * (1 - output / exact) + (y + 0.5) / scale - 0.5;
  }
  return 0;
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

bool takes_lower(SampleRule::Nearest nearest, double ratio) {
  switch (nearest) {
    case SampleRule::Nearest::round_prefer_floor:
      return ratio <= 0.5;
    case SampleRule::Nearest::round_prefer_ceil:
      return ratio < 0.5;
    case SampleRule::Nearest::floor:
      return true;
    case SampleRule::Nearest::ceil:
      break;
  }
  return false;
}

// The taps around a position: the first one's element, which may lie outside, and the weights.
struct Taps {
  int64_t start;
  double weights[kMaxTaps];
};

// A position on an element belongs to the gap before it: `ratio`, the way through the gap, is in (0, 1].
Taps taps_at(const SampleRule& rule, double x) {
  x = std::isnan(x) ? 0 : std::clamp(x, -0x1p50, 0x1p50);
  const double whole = std::floor(x);
  const double ratio = x == whole ? 1 : x - whole;
  const int64_t before = static_cast<int64_t>(whole) - (x == whole ? 1 : 0);
  if (rule.mode == SampleRule::Mode::nearest)
    return {ratio != 1 && takes_lower(rule.nearest, ratio) ? before : before + 1, {1}};
  const int left = rule.taps() / 2 - 1;  // taps before the one at `before`
  Taps taps{before - left, {}};
  for (int t = 0; t < rule.taps(); ++t) {
    const double distance = static_cast<double>(t - left) - ratio;
    taps.weights[t] = rule.mode == SampleRule::Mode::cubic ? cubic_weight(distance, rule.cubic_a)
                                                           : std::max(0.0, 1 - std::fabs(distance));
  }
  return taps;
}

// What lies outside does not count, and the others make up for it.
void exclude(Taps& taps, int count, int64_t input) {
  double kept = 0;
  for (int t = 0; t < count; ++t) {
    if (taps.start + t < 0 || taps.start + t >= input) taps.weights[t] = 0;
    kept += taps.weights[t];
  }
  for (int t = 0; kept != 0 && t < count; ++t) taps.weights[t] /= kept;
}

template <class E>
std::optional<E> enum_of(int64_t value, E last) {
  return value >= 0 && value <= static_cast<int64_t>(last) ? std::optional(static_cast<E>(value)) : std::nullopt;
}

}  // namespace

std::optional<SampleRule> SampleRule::from_params(std::span<const int64_t> params) {
  if (params.size() != kParams) return std::nullopt;
  const auto mode = enum_of(params[0], Mode::cubic);
  const auto coordinates = enum_of(params[1], Coordinates::tf_half_pixel_for_nn);
  const auto nearest = enum_of(params[2], Nearest::ceil);
  if (!mode || !coordinates || !nearest || (params[3] != 0 && params[3] != 1) || params[4] < 0 ||
      params[4] > UINT32_MAX)
    return std::nullopt;
  return SampleRule{*mode, *coordinates, *nearest, params[3] == 1,
                    std::bit_cast<float>(static_cast<uint32_t>(params[4]))};
}

void fill_samples(const SampleRule& rule, int64_t input, int64_t output, double scale, int32_t* index, float* weight) {
  const int count = rule.taps();
  const bool is_still = scale == 1 && input == output;
  for (int64_t o = 0; o < output; ++o, index += count, weight += count) {
    const auto y = static_cast<double>(o);
    Taps taps = taps_at(
        rule, is_still ? y : source_position(rule, static_cast<double>(input), static_cast<double>(output), scale, y));
    if (rule.exclude_outside) exclude(taps, count, input);
    int64_t last = taps.start;
    for (int t = count; t-- > 0;)
      if (taps.weights[t] != 0) last = taps.start + t;
    for (int t = 0; t < count; ++t) {
      if (taps.weights[t] != 0) last = taps.start + t;
      index[t] = static_cast<int32_t>(std::clamp<int64_t>(last, 0, input - 1));
      weight[t] = static_cast<float>(taps.weights[t]);
    }
  }
}

}  // namespace lathe::cpu
