// SPDX-License-Identifier: Apache-2.0
// Which steps of a plan in the making have to stay in their order.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace lathe {

// The tensors that a step reads and writes.
struct Accesses {
  std::span<const plan::TensorId> read, written;
  bool is_copy = false;
};

class Dependences {
 public:
  explicit Dependences(const plan::Plan& plan) : plan_(plan) {  // to which tensors may be added
    for (const Symbol& symbol : plan.symbols) ranges_.push_back(symbol.range);
  }

  // Whether a tensor of one list has an element in common with one of the other.
  bool touch(std::span<const plan::TensorId> a, std::span<const plan::TensorId> b) const;
  // Whether `second` has to stay behind `first`: one writes what the other reads or writes, as what is behind a copy
  // does where the copy is left out (plan/aliased_bindings.h).
  bool are_ordered(const Accesses& first, const Accesses& second) const;

 private:
  const plan::Plan& plan_;
  std::vector<Range> ranges_;
};

}  // namespace lathe
