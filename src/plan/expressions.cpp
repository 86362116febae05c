// SPDX-License-Identifier: Apache-2.0
#include "plan/expressions.h"

namespace lathe::plan {

std::string_view name_of(ExprUse use) {
  switch (use) {
    case ExprUse::dimension:
      return "a dimension";
    case ExprUse::stride:
      return "a stride";
    case ExprUse::offset:
      return "the offset";
    case ExprUse::buffer_size:
      return "its size";
    case ExprUse::left_side:
      return "its left side";
    case ExprUse::right_side:
      return "its right side";
    case ExprUse::count_place:
      return "the place of a size";
    case ExprUse::workspace:
      return "its workspace";
    case ExprUse::launch_grid:
      return "a launch's grid";
    case ExprUse::launch_argument:
      return "a launch's argument";
    case ExprUse::trip_count:
      return "its trip count";
  }
  return "an expression";
}

}  // namespace lathe::plan
