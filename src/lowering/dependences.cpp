// SPDX-License-Identifier: Apache-2.0
#include "lowering/dependences.h"

#include <algorithm>

#include "plan/disjoint.h"

namespace lathe {

using plan::TensorId;

bool Dependences::touch(std::span<const TensorId> a, std::span<const TensorId> b) const {
  const auto meet = [&](TensorId i, TensorId j) {
    if (i == plan::kNoTensor || j == plan::kNoTensor) return false;
    const plan::TensorDesc &x = plan_.tensors[i], &y = plan_.tensors[j];
    // An empty tensor has no element in common with itself, and is written before it is read all the same.
    return x.storage == y.storage && x.index == y.index && (x.offset == y.offset || !plan::are_disjoint(x, y, ranges_));
  };
  return std::ranges::any_of(
      a, [&](TensorId i) { return std::ranges::any_of(b, [&](TensorId j) { return meet(i, j); }); });
}

bool Dependences::are_ordered(const Accesses& first, const Accesses& second) const {
  return touch(first.written, second.read) || touch(first.written, second.written) ||
         touch(first.read, second.written) || (second.is_copy && touch(first.read, second.read));
}

}  // namespace lathe
