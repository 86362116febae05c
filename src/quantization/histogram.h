// SPDX-License-Identifier: Apache-2.0
// How often magnitudes occur among the values of a tensor, over any number of batches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/tensor.h"

namespace lathe {

// Bins of one width, which doubles when a larger value comes: counts of two bins become that of one, so that nothing is
// lost but resolution. Zeros are counted apart: every scale represents them exactly.
class Histogram {
 public:
  static constexpr size_t kBins = 4096;

  // Of a tensor of floats.
  Result<> add(const Tensor& values);

  double bin_width() const { return width_; }                      // 0 = there were zeros only
  const std::vector<uint64_t>& counts() const { return counts_; }  // kBins; empty = there were zeros only
  uint64_t zeros() const { return zeros_; }
  double largest() const { return largest_; }  // magnitude
  double lowest() const { return lowest_; }    // of the finite values and 0
  double highest() const { return highest_; }
  uint64_t non_finite() const { return non_finite_; }  // NaNs and infinities, which are in no bin

  // One line of text, from which the same histogram can be made; but it has no signs, and values of both are assumed.
  std::string to_text() const;
  static Result<Histogram> parse(std::string_view text);

 private:
  template <class T>
  void add(std::span<const T> values);
  void widen(double lowest, double highest);

  double width_ = 0;
  double largest_ = 0, lowest_ = 0, highest_ = 0;
  uint64_t zeros_ = 0, non_finite_ = 0;
  std::vector<uint64_t> counts_;
};

}  // namespace lathe
