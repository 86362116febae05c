// SPDX-License-Identifier: Apache-2.0
#include "runtime/round_numbers.h"

#include <numeric>

namespace lathe {

Result<> RoundNumbers::write(int64_t round, std::byte* to, Queue& queue) {
  if (device_.is_host()) return device_.upload(to, &round, sizeof(round), queue);
  const int64_t first = round - round % kHeld;
  if (first != first_) LATHE_TRY(hold(first, queue));
  const std::byte* from = table_.data() + static_cast<size_t>(round - first) * sizeof(round);
  return device_.copy({to, from, sizeof(round)}, queue);
}

Result<> RoundNumbers::hold(int64_t first, Queue& queue) {
  first_ = -1;
  numbers_.resize(kHeld);
  std::iota(numbers_.begin(), numbers_.end(), first);
  const size_t bytes = numbers_.size() * sizeof(int64_t);
  LATHE_TRY(memory_.grow(table_, bytes));
  LATHE_TRY(device_.upload(table_.data(), numbers_.data(), bytes, queue));
  first_ = first;
  return {};
}

}  // namespace lathe
