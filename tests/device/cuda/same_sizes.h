// SPDX-License-Identifier: Apache-2.0
// Whether two declarations of a C function agree as far as a call is concerned.
#pragma once

#include <cstddef>
#include <iterator>

// Every function takes as many parameters, of the same sizes.
template <class>
struct Sizes;
template <class R, class... P>
struct Sizes<R (*)(P...)> {
  static constexpr size_t values[] = {sizeof(R), sizeof(P)..., 0};
};
template <class Ours, class Theirs>
constexpr bool same_sizes() {
  if (std::size(Sizes<Ours>::values) != std::size(Sizes<Theirs>::values)) return false;
  for (size_t i = 0; i < std::size(Sizes<Ours>::values); ++i)
    if (Sizes<Ours>::values[i] != Sizes<Theirs>::values[i]) return false;
  return true;
}
