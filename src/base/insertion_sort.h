// SPDX-License-Identifier: Apache-2.0
// Sorting of few elements, such as a tensor's axes.
#pragma once

#include <span>
#include <utility>

namespace lathe {

// Stable. It allocates nothing, which the library's stable sort does.
template <class T, class Before>
void insertion_sort(std::span<T> all, const Before& before) {
  for (size_t i = 1; i < all.size(); ++i)
    for (size_t k = i; k > 0 && before(all[k], all[k - 1]); --k) std::swap(all[k], all[k - 1]);
}

}  // namespace lathe
