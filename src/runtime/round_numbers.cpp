// SPDX-License-Identifier: Apache-2.0
#include "runtime/round_numbers.h"

#include <numeric>

namespace lathe {

Result<> RoundNumbers::write(int64_t round, std::byte* to, Queue& queue) {
  if (device_.is_host()) return device_.upload(to, &round, sizeof(round), queue);
  const int64_t first = round - round % kHeld;
  Table& table = tables_[first == 0 ? 0 : 1];
  if (first != table.first) LATHE_TRY(fill(table, first, queue));
  const std::byte* from = table.memory.data() + static_cast<size_t>(round - first) * sizeof(round);
  return device_.copy({to, from, sizeof(round)}, queue);
}

Result<> RoundNumbers::fill(Table& table, int64_t first, Queue& queue) {
  if (first != 0 && queue.is_captured())
    return fail(ErrorCode::invalid_state, "loops of more than {} rounds cannot be captured: enqueue this one by itself",
                kHeld);
  table.first = -1;
  table.numbers.resize(kHeld);
  std::iota(table.numbers.begin(), table.numbers.end(), first);
  const size_t bytes = table.numbers.size() * sizeof(int64_t);
  LATHE_TRY(memory_.grow(table.memory, bytes));
  LATHE_TRY(device_.upload(table.memory.data(), table.numbers.data(), bytes, queue));
  table.first = first;
  return {};
}

}  // namespace lathe
