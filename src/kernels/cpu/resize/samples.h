// SPDX-License-Identifier: Apache-2.0
// Where resizing reads, as tables that are made while running: for dimensions whose extents only a launch knows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace lathe::cpu {

// How an output position becomes weights of input elements: the attributes of ONNX's Resize. Numbers are written into
// plans.
struct SampleRule {
  enum class Mode : int64_t { nearest = 0, linear = 1, cubic = 2 };
  enum class Coordinates : int64_t {
    half_pixel = 0,
    half_pixel_symmetric = 1,
    pytorch_half_pixel = 2,
    align_corners = 3,
    asymmetric = 4,
    tf_half_pixel_for_nn = 5,
  };
  enum class Nearest : int64_t { round_prefer_floor = 0, round_prefer_ceil = 1, floor = 2, ceil = 3 };

  Mode mode = Mode::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  Nearest nearest = Nearest::round_prefer_floor;
  bool exclude_outside = false;
  float cubic_a = 0;

  int taps() const { return mode == Mode::nearest ? 1 : mode == Mode::linear ? 2 : 4; }

  static constexpr size_t kParams = 5;  // in the order of the members, cubic_a as its bits
  static std::optional<SampleRule> from_params(std::span<const int64_t> params);
};

// Fills index[output][taps] and weight[output][taps]; `scale` is output / input unless the op states another. What has
// no weight repeats the index of a tap that has.
void fill_samples(const SampleRule& rule, int64_t input, int64_t output, double scale, int32_t* index, float* weight);

}  // namespace lathe::cpu
