// SPDX-License-Identifier: Apache-2.0
// Which of many sets of numbers came last, for what is kept of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lathe {

// Keys of equally many numbers, each with a place of its own below `most`. When there are that many, the key that was
// not found for the longest gives its place to a new one. Their hashes are neighbours in memory: a list that is sorted
// by use moves, and points to, what is far apart. One thread at a time.
class RecentKeys {
 public:
  void hold_most(size_t most, size_t numbers);  // of a key, at the most; forgets all, and nothing else allocates
  void forget();
  void forget(size_t place) { used_[place] = 0; }

  // The place of the key, which is the latest from now on.
  std::optional<size_t> find(std::span<const int64_t> key);
  // A place that no key has from now on: the first of those that none has, else that of the oldest. No place = none may
  // be held. What belongs to a key can be made ready before the key is set there.
  std::optional<size_t> vacate();
  void set(size_t place, std::span<const int64_t> key);     // a key that is not there; the latest
  std::optional<size_t> add(std::span<const int64_t> key);  // both

 private:
  size_t numbers_ = 0;
  uint64_t clock_ = 0;
  std::vector<uint64_t> hashes_, used_;  // by place; used_: when it was, 0 = no key has it
  std::vector<int64_t> keys_;            // numbers_ for each place
};

}  // namespace lathe
