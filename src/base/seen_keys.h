// SPDX-License-Identifier: Apache-2.0
// Which keys the queries of an attention see by their places alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lathe {

struct KeyRange {
  int64_t first = 0, end = 0;
  int64_t count() const { return end - first; }
};

// The last query's own key is the last one, and that of each before it one before that.
struct SeenKeys {
  bool causal = false;  // a query sees no key behind its own
  int64_t window = 0;   // nor one that is so far from its own, or farther; 0 = any
  static constexpr int64_t kMostWindow = INT32_MAX;

  bool is_all() const { return !causal && window == 0; }
  KeyRange of(int64_t query, int64_t queries, int64_t keys) const {
    const int64_t own = query + keys - queries, last = causal ? own + 1 : window > 0 ? own + window : keys;
    const int64_t end = std::clamp<int64_t>(last, 0, keys);
    return {window > 0 ? std::clamp<int64_t>(own - window + 1, 0, end) : 0, end};
  }
};

}  // namespace lathe
