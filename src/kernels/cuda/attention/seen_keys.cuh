// SPDX-License-Identifier: Apache-2.0
// Which keys queries see by their places alone (base/seen_keys.h). kWindow: 0 = keys at any distance.
#pragma once

#include "lib/types.cuh"

template <bool kCausal, long kWindow>
struct SeenKeys {
  static constexpr bool kIsWindow = kWindow > 0;
  long queries, keys;

  // The keys from here on are hidden from `query` and those before it.
  LATHE_DEVICE_MEMBER long end_of(long query) const {
    if (!kCausal && !kIsWindow) return keys;
    const long end = query + keys - queries + (kCausal ? 1 : kWindow);
    return end < keys ? end : keys;
  }
  // The keys before this one are hidden from `query` and those behind it.
  LATHE_DEVICE_MEMBER long first_of(long query) const {
    const long first = query + keys - queries - kWindow + 1;
    return kIsWindow && first > 0 ? first : 0;
  }
  // Whether so many queries from `query` on all see so many keys from `key` on.
  LATHE_DEVICE_MEMBER bool sees_all(long query, int queries_there, long key, int keys_there) const {
    return key >= first_of(query + queries_there - 1) && key + keys_there <= end_of(query);
  }
  LATHE_DEVICE_MEMBER bool sees(long query, long key) const { return key >= first_of(query) && key < end_of(query); }
};
