// SPDX-License-Identifier: Apache-2.0
// Figures of a series of times.
#pragma once

#include <vector>

namespace lathe::trtexec {

struct TimeStatistics {
  double least = 0, largest = 0, mean = 0, median = 0;
  double variation = 0;             // standard deviation by mean, in per cent
  std::vector<double> percentiles;  // in the order in which they were asked for
};

// `percents` are from 0 to 100. A percentile is the largest time that is left when so many per cent of the times, the
// larger ones rounded down, are counted: that of 100 is the largest time.
TimeStatistics statistics_of(std::vector<double> times, const std::vector<double>& percents);

}  // namespace lathe::trtexec
