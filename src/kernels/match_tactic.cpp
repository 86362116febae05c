// SPDX-License-Identifier: Apache-2.0
#include "kernels/match_tactic.h"

#include <algorithm>

namespace lathe {

std::vector<Config> best_first(std::vector<Config> configs, size_t most) {
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
  if (configs.size() > most) configs.resize(most);
  return configs;
}

}  // namespace lathe
