// SPDX-License-Identifier: Apache-2.0
// What a library has chosen for the latest shapes of a call.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lathe::cuda {

// Thread-safe. `Values` are a call's arguments, of which the first `kAddresses` do not matter to the choice.
template <class Values, class Choice, size_t kAddresses>
class LatestShapes {
 public:
  explicit LatestShapes(size_t most) : most_(most) {}

  // The choice for these values, which `choose(numbers)` makes where it is not known; addresses are 0 for it.
  template <class Choose>
  Result<std::shared_ptr<const Choice>> get(const Values& values, Choose&& choose) {
    Values numbers = values;
    std::fill_n(numbers.begin(), kAddresses, 0);
    const std::lock_guard lock(mutex_);
    for (const auto& [known, choice] : choices_)
      if (known == numbers) return choice;
    LATHE_ASSIGN(Choice made, choose(std::as_const(numbers)));
    if (choices_.size() == most_) choices_.erase(choices_.begin());
    choices_.emplace_back(numbers, std::make_shared<const Choice>(std::move(made)));
    return choices_.back().second;
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::vector<std::pair<Values, std::shared_ptr<const Choice>>> choices_;  // oldest first
};

}  // namespace lathe::cuda
