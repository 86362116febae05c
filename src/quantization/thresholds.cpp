// SPDX-License-Identifier: Apache-2.0
#include "quantization/thresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace lathe {
namespace {

double times_log(double x) { return x > 0 ? x * std::log(x) : 0; }

// Divergences of the histogram's distribution, clipped behind its first bins, from that of the levels. Each level gives
// its share to those bins of its own that hold something, so that sums over levels take the place of sums over bins.
class Divergence {
 public:
  Divergence(const std::vector<uint64_t>& counts, size_t levels)
      : levels_(levels), sums_(counts.size() + 1), used_(counts.size() + 1), logs_(counts.size() + 1) {
    for (size_t i = 0; i < counts.size(); ++i) {
      sums_[i + 1] = sums_[i] + static_cast<double>(counts[i]);
      used_[i + 1] = used_[i] + (counts[i] > 0);
      logs_[i + 1] = logs_[i] + times_log(static_cast<double>(counts[i]));
    }
  }

  // Of the first `bins` bins; what lies beyond them is counted in the last one.
  double of(size_t bins) const {
    const double all = sums_.back(), kept = sums_[bins], clipped = all - kept;
    const double last = kept - sums_[bins - 1];
    double divergence = logs_[bins] - times_log(last) + times_log(last + clipped);
    for (size_t level = 0; level < levels_; ++level) {
      const size_t begin = level * bins / levels_, end = (level + 1) * bins / levels_;
      const double share = sums_[end] - sums_[begin];
      double counted = share, used = static_cast<double>(used_[end] - used_[begin]);
      if (end == bins) {
        counted += clipped;
        if (last == 0 && clipped > 0) used += 1;
      }
      if (counted == 0) continue;
      if (share == 0) return std::numeric_limits<double>::infinity();  // a level of nothing stands for something
      divergence -= counted * std::log(share / used);
    }
    return divergence / all + std::log(kept / all);
  }

 private:
  size_t levels_;
  std::vector<double> sums_;
  std::vector<size_t> used_;
  std::vector<double> logs_;
};

size_t used_bins(const std::vector<uint64_t>& counts) {
  size_t used = counts.size();
  while (used > 0 && counts[used - 1] == 0) --used;
  return used;
}

}  // namespace

double entropy_threshold(const Histogram& histogram, size_t levels) {
  const size_t used = used_bins(histogram.counts());
  size_t best = used;
  double least = std::numeric_limits<double>::infinity();
  const Divergence divergence(histogram.counts(), levels);
  for (size_t bins = levels; bins <= used; ++bins)
    if (const double found = divergence.of(bins); found < least) least = found, best = bins;
  return std::min((static_cast<double>(best) + 0.5) * histogram.bin_width(), histogram.largest());
}

double quantile_threshold(const Histogram& histogram, double quantile) {
  const auto& counts = histogram.counts();
  const uint64_t all = std::accumulate(counts.begin(), counts.end(), histogram.zeros());
  const double wanted = quantile * static_cast<double>(all);
  auto within = static_cast<double>(histogram.zeros());
  for (size_t i = 0; i < counts.size(); ++i) {
    within += static_cast<double>(counts[i]);
    if (counts[i] > 0 && within >= wanted)
      return std::min(static_cast<double>(i + 1) * histogram.bin_width(), histogram.largest());
  }
  return histogram.largest();
}

}  // namespace lathe
