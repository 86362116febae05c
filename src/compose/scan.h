// SPDX-License-Identifier: Apache-2.0
// A loop that carries one value over the slices of another.
#pragma once

#include <functional>
#include <string>

#include "ir/builder.h"

namespace lathe {

struct ScanForm {
  int64_t axis = 0;  // of what is scanned
  bool is_reversed = false;
  bool stacks = false;  // the states behind all slices, side by side along `axis`, instead of the last one
  std::string part;     // what a slice is called
};

// `step` makes the state behind a slice.
using ScanStep = std::function<ir::Value*(ir::GraphBuilder& inside, ir::Value* state, ir::Value* slice)>;

ir::Value* scan(ir::GraphBuilder& c, ir::Value* begin, ir::Value* scanned, const ScanForm& how, const ScanStep& step);

}  // namespace lathe
