// SPDX-License-Identifier: Apache-2.0
#include "runtime/recent_keys.h"

#include <algorithm>

namespace lathe {
namespace {

uint64_t hash_of(std::span<const int64_t> key) {
  uint64_t hash = 0;
  for (const int64_t number : key) hash = (hash ^ static_cast<uint64_t>(number)) * 0x9e3779b97f4a7c15u;
  return hash;
}

}  // namespace

void RecentKeys::hold_most(size_t most, size_t numbers) {
  numbers_ = numbers;
  hashes_.assign(most, 0);
  used_.assign(most, 0);
  keys_.assign(most * numbers, 0);
}

void RecentKeys::forget() { std::ranges::fill(used_, 0); }

std::optional<size_t> RecentKeys::find(std::span<const int64_t> key) {
  const uint64_t hash = hash_of(key);
  for (size_t place = 0; place < hashes_.size(); ++place) {
    if (hashes_[place] != hash || used_[place] == 0) continue;
    if (!std::ranges::equal(key, std::span(keys_).subspan(place * numbers_, key.size()))) continue;
    used_[place] = ++clock_;
    return place;
  }
  return std::nullopt;
}

std::optional<size_t> RecentKeys::vacate() {
  const auto oldest = std::ranges::min_element(used_);
  if (oldest == used_.end()) return std::nullopt;
  *oldest = 0;
  return static_cast<size_t>(oldest - used_.begin());
}

void RecentKeys::set(size_t place, std::span<const int64_t> key) {
  hashes_[place] = hash_of(key);
  used_[place] = ++clock_;
  std::ranges::copy(key, keys_.begin() + static_cast<std::ptrdiff_t>(place * numbers_));
}

std::optional<size_t> RecentKeys::add(std::span<const int64_t> key) {
  const std::optional<size_t> place = vacate();
  if (place) set(*place, key);
  return place;
}

}  // namespace lathe
