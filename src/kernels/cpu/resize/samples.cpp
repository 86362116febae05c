// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/resize/samples.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace lathe::cpu {
namespace {

double source_position(const SampleRule& rule, const SampledAxis& axis, double y) {
  using Coordinates = SampleRule::Coordinates;
  const auto input = static_cast<double>(axis.input);
  const double scale = axis.scale, exact = scale * input;  // the output's extent before it was rounded
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
      return input / 2 * (1 - static_cast<double>(axis.output) / exact) + (y + 0.5) / scale - 0.5;
    case Coordinates::tf_crop_and_resize: {
      const double extent = (axis.roi_end - axis.roi_begin) * (input - 1);
      return axis.roi_begin * (input - 1) + (exact == 1 ? extent / 2 : y * extent / (exact - 1));
    }
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

// Taps before the one at the whole part of a position.
int64_t taps_before(const SampleRule& rule, double scale) {
  const double shrink = rule.antialias ? std::min(scale, 1.0) : 1.0;
  const double reach = std::min((rule.mode == SampleRule::Mode::cubic ? 2 : 1) / shrink, 0x1p50);
  return -(static_cast<int64_t>(std::floor(-reach)) + 1);
}

// Weights around a position that lies `ratio` behind tap `left`; antialiasing widens the filter when the axis shrinks.
void weigh(const SampleRule& rule, double scale, double ratio, int64_t left, std::span<double> weights) {
  const double shrink = rule.antialias ? std::min(scale, 1.0) : 1.0;
  double sum = 0;
  for (size_t t = 0; t < weights.size(); ++t) {
    const double distance = shrink * (static_cast<double>(static_cast<int64_t>(t) - left) - ratio);
    weights[t] = rule.mode == SampleRule::Mode::cubic ? cubic_weight(distance, rule.cubic_a)
                                                      : std::max(0.0, 1 - std::fabs(distance));
    sum += weights[t];
  }
  for (size_t t = 0; rule.antialias && t < weights.size(); ++t) weights[t] /= sum;
}

// What lies outside does not count, and the others make up for it.
void exclude(const Taps& taps, int64_t input, double* weights) {
  double kept = 0;
  for (int64_t t = 0; t < taps.count; ++t) {
    if (taps.start + t < 0 || taps.start + t >= input) weights[t] = 0;
    kept += weights[t];
  }
  for (int64_t t = 0; kept != 0 && t < taps.count; ++t) weights[t] /= kept;
}

}  // namespace

int64_t taps_of(const SampleRule& rule, double scale) {
  return rule.mode == SampleRule::Mode::nearest ? 1 : 2 * taps_before(rule, scale) + 2;
}

// A position on an element belongs to the gap before it: `ratio`, the way through the gap, is in (0, 1].
Taps find_taps(const SampleRule& rule, const SampledAxis& axis, int64_t at, double* weights) {
  Taps taps{at, 1};
  weights[0] = 1;
  const auto y = static_cast<double>(at);
  double x = axis.is_still() ? y : source_position(rule, axis, y);
  x = std::isnan(x) ? 0 : std::clamp(x, -0x1p50, 0x1p50);
  const double whole = std::floor(x), ratio = x == whole ? 1 : x - whole;
  const int64_t before = static_cast<int64_t>(whole) - (x == whole ? 1 : 0);
  if (axis.is_still()) return taps;
  if (rule.mode == SampleRule::Mode::nearest) {
    taps.start = ratio != 1 && takes_lower(rule.nearest, ratio) ? before : before + 1;
  } else {
    const int64_t left = taps_before(rule, axis.scale);
    taps.start = before - left;
    taps.count = taps_of(rule, axis.scale);
    weigh(rule, axis.scale, ratio, left, {weights, static_cast<size_t>(taps.count)});
  }
  if (rule.exclude_outside) exclude(taps, axis.input, weights);
  taps.outside = rule.coordinates == SampleRule::Coordinates::tf_crop_and_resize &&
                 (x < 0 || x > static_cast<double>(axis.input - 1));
  return taps;
}

template <class W>
void fill_samples(const SampleRule& rule, const SampledAxis& axis, int32_t* index, W* weight) {
  constexpr int64_t kMostTaps = 4;
  const int64_t count = taps_of(rule, axis.scale);
  for (int64_t o = 0; o < axis.output; ++o, index += count, weight += count) {
    double weights[kMostTaps] = {};
    const Taps taps = find_taps(rule, axis, o, weights);
    int64_t last = taps.start;
    for (int64_t t = taps.count; t-- > 0;)
      if (weights[t] != 0) last = taps.start + t;
    for (int64_t t = 0; t < count; ++t) {
      if (t < taps.count && weights[t] != 0) last = taps.start + t;
      index[t] = static_cast<int32_t>(std::clamp<int64_t>(last, 0, axis.input - 1));
      weight[t] = static_cast<W>(t < taps.count ? weights[t] : 0);
    }
  }
}
template void fill_samples(const SampleRule& rule, const SampledAxis& axis, int32_t* index, float* weight);
template void fill_samples(const SampleRule& rule, const SampledAxis& axis, int32_t* index, double* weight);

}  // namespace lathe::cpu
