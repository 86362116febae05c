// SPDX-License-Identifier: Apache-2.0
// The few best ones of a row: a sorted list, which most elements do not enter.
#pragma once

#include <cstdint>
#include <new>

namespace lathe::cpu {

inline constexpr int64_t kFew = 64;  // longer lists cost more to insert into than to sort at the end

// `Entry` is a key and a position in one; the smaller one is better.
template <class Entry>
class FewBest {
 public:
  using Key = typename Entry::Key;

  FewBest(Entry* entries, int64_t k) : entries_(entries), k_(k) {}

  bool is_full() const { return count_ == k_; }
  // A full list's worst key: what is not greater stays out.
  Key bound() const { return entries_[k_ - 1].key(); }
  const Entry* entries() const { return entries_; }

  // Of positions that follow all earlier ones.
  void add(Key key, int64_t position) {
    const Entry entry(key, position);
    if (!is_full())
      new (entries_ + count_++) Entry(entry);
    else if (!(entry < entries_[k_ - 1]))
      return;
    int64_t i = count_ - 1;
    for (; i > 0 && entry < entries_[i - 1]; --i) entries_[i] = entries_[i - 1];
    entries_[i] = entry;
  }

 private:
  Entry* entries_;
  int64_t k_, count_ = 0;
};

}  // namespace lathe::cpu
