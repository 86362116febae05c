// SPDX-License-Identifier: Apache-2.0
// Where resizing reads, worked out while running.
#pragma once

#include <cstdint>
#include <tuple>

namespace lathe::cpu {

// How an output position becomes weights of input elements: the attributes of ONNX's Resize. Enumerations are in the
// order of the op's.
struct SampleRule {
  enum class Mode : int64_t { nearest, linear, cubic };
  enum class Coordinates : int64_t {
    half_pixel,
    half_pixel_symmetric,
    pytorch_half_pixel,
    align_corners,
    asymmetric,
    tf_half_pixel_for_nn,
    tf_crop_and_resize,
  };
  enum class Nearest : int64_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

  Mode mode = Mode::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  Nearest nearest = Nearest::round_prefer_floor;
  bool exclude_outside = false;
  bool antialias = false;
  double cubic_a = 0;

  static constexpr auto members() {
    return std::tuple(&SampleRule::mode, &SampleRule::coordinates, &SampleRule::nearest, &SampleRule::exclude_outside,
                      &SampleRule::antialias, &SampleRule::cubic_a);
  }
};

// A dimension that is resized.
struct SampledAxis {
  int64_t input, output;
  double scale;  // output / input unless the op states another
  double roi_begin = 0, roi_end = 1;

  bool is_still() const { return scale == 1 && input == output && roi_begin == 0 && roi_end == 1; }
};

// The elements start, start + 1, ... of the input, some of which may lie outside: there the end's element counts.
struct Taps {
  int64_t start = 0, count = 0;
  bool outside = false;  // of cropping: the position takes the extrapolation value
};

// How many taps an output element has: 1, 2 or 4 but for antialiasing.
int64_t taps_of(const SampleRule& rule, double scale);
// The taps of output element `at`, and their weights.
Taps find_taps(const SampleRule& rule, const SampledAxis& axis, int64_t at, double* weights);

// Fills index[output][taps] and weight[output][taps], of float or double, by a rule without antialiasing. What has no
// weight repeats the index of a tap that has.
template <class W>
void fill_samples(const SampleRule& rule, const SampledAxis& axis, int32_t* index, W* weight);

}  // namespace lathe::cpu
