// SPDX-License-Identifier: Apache-2.0
// Mean and variance, shared by the normalisations.
#pragma once

#include <cstdint>
#include <span>

namespace lathe {

struct Moments {
  double mean = 0;
  double variance = 0;  // of the population
};

inline Moments moments_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Moments moments;
  for (double value : values) moments.mean += value;
  moments.mean /= count;
  for (double value : values) moments.variance += (value - moments.mean) * (value - moments.mean);
  moments.variance /= count;
  return moments;
}

}  // namespace lathe
