// SPDX-License-Identifier: Apache-2.0
#include "trtexec/layer_times.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "trtexec/statistics.h"

namespace lathe::trtexec {

void LayerTimes::reportLayerTime(const char* layer, float milliseconds) noexcept {
  try {
    const auto [entry, is_new] = index_.emplace(layer, rows_.size());
    if (is_new) rows_.push_back({layer, {}});
    rows_[entry->second].milliseconds.push_back(milliseconds);
  } catch (...) {  // the library knows no exceptions; a time is lost where memory is
  }
}

double LayerTimes::Row::sum() const { return std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0); }
double LayerTimes::Row::median() const { return statistics_of(milliseconds, {}).median; }

double LayerTimes::total() const {
  double total = 0;
  for (const Row& row : rows_) total += row.sum();
  return total;
}

size_t LayerTimes::iterations() const {
  size_t most = 0;
  for (const Row& row : rows_) most = std::max(most, row.milliseconds.size());
  return most;
}

void LayerTimes::print(TrtexecLog& log) const {
  const auto count = static_cast<double>(std::max<size_t>(iterations(), 1));
  const double all = total();
  double medians = 0;
  log.blank();
  log.info("=== Profile ({} iterations ) ===", iterations());
  log.info("   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer");
  for (const Row& row : rows_) {
    medians += row.median();
    log.info("{:11.2f}{:13.4f}{:13.4f}{:10.1f}   {}", row.sum(), row.sum() / count, row.median(),
             all > 0 ? row.sum() / all * 100 : 0, row.name);
  }
  log.info("{:11.2f}{:13.4f}{:13.4f}{:10.1f}   Total", all, all / count, medians, 100.0);
  log.blank();
}

std::string LayerTimes::json() const {
  using Json = nlohmann::ordered_json;
  const auto count = static_cast<double>(std::max<size_t>(iterations(), 1));
  const double all = total();
  Json list = Json::array({Json{{"count", iterations()}}});
  for (const Row& row : rows_)
    list.push_back({{"name", row.name},
                    {"timeMs", row.sum()},
                    {"averageMs", row.sum() / count},
                    {"medianMs", row.median()},
                    {"percentage", all > 0 ? row.sum() / all * 100 : 0}});
  return list.dump(1) + "\n";
}

}  // namespace lathe::trtexec
