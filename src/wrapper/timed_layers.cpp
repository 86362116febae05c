// SPDX-License-Identifier: Apache-2.0
#include "wrapper/timed_layers.h"

#include <algorithm>

#include "api/json.h"

namespace lathe::wrapper {

void TimedLayers::reportLayerTime(const char* layer, float milliseconds) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const auto [place, is_new] = places_.try_emplace(layer, sums_.size());
    if (is_new) sums_.push_back({layer, 0, 0});
    Sum& sum = sums_[place->second];
    sum.milliseconds += static_cast<double>(milliseconds);
    ++sum.runs;
  } catch (...) {  // one time less
  }
}

void TimedLayers::restart() {
  const std::lock_guard lock(mutex_);
  sums_.clear();
  places_.clear();
}

std::string TimedLayers::json(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  int64_t runs = 0;
  api::Json layers = api::Json::array();
  for (const Sum& sum : sums_) {
    runs = std::max(runs, sum.runs);
    layers.push_back(
        api::json_object({{"name", sum.layer}, {"milliseconds", sum.milliseconds / static_cast<double>(sum.runs)}}));
  }
  return api::json_object({{"name", name}, {"runs", runs}, {"layers", layers}}).text();
}

}  // namespace lathe::wrapper
