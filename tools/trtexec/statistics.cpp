// SPDX-License-Identifier: Apache-2.0
#include "trtexec/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lathe::trtexec {

TimeStatistics statistics_of(std::vector<double> times, const std::vector<double>& percents) {
  TimeStatistics all;
  if (times.empty()) return all;
  std::sort(times.begin(), times.end());
  const size_t count = times.size();
  const auto number = static_cast<double>(count);
  all.least = times.front();
  all.largest = times.back();
  all.mean = std::accumulate(times.begin(), times.end(), 0.0) / number;
  all.median = count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
  double squares = 0;
  for (const double time : times) squares += (time - all.mean) * (time - all.mean);
  all.variation = all.mean > 0 ? std::sqrt(squares / number) / all.mean * 100 : 0;
  for (const double percent : percents) {
    const auto left_out = static_cast<size_t>((1 - percent / 100) * number);
    all.percentiles.push_back(times[count - 1 - std::min(left_out, count - 1)]);
  }
  return all;
}

}  // namespace lathe::trtexec
