// SPDX-License-Identifier: Apache-2.0
#include "passes/reshape_target.h"

#include <algorithm>

namespace lathe {

std::optional<Ints> reshape_target(const Shape& from, const Shape& to) {
  Ints target;
  bool inferred = false;
  const bool empty = std::find(to.begin(), to.end(), Expr(0)) != to.end();
  for (size_t i = 0; i < to.size(); ++i) {
    const bool stays = i < from.size() && from[i] == to[i];
    const std::optional<int64_t> number = to[i].as_constant();
    if (number && (*number != 0 || stays)) {
      target.push_back(*number);
    } else if (stays) {
      target.push_back(0);
    } else if (!number && !inferred && !empty) {
      inferred = true;
      target.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  return target;
}

}  // namespace lathe
