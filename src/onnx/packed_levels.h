// SPDX-License-Identifier: Apache-2.0
// Levels of 2, 4 and 8 bits as ONNX Runtime's operators have them: in bytes, of which each row begins with its own.
#pragma once

#include <vector>

#include "onnx/importer.h"

namespace lathe::onnx {

// u2, u4 or u8.
DType level_type(int64_t bits);

struct LevelRows {
  int64_t bits = 4, rows = 1, columns = 1;
  int64_t row_bytes() const { return (columns * bits + 7) / 8; }
};

// [rows, columns] of an input that must be known, told as `what`. `pitch`: bytes from row to row; 0 = as few as they
// need. Column j is the one that `order` says, if it says any. A placeholder after an error.
ir::Value* unpacked_levels(NodeContext& c, size_t input, std::string_view what, const LevelRows& form,
                           int64_t pitch = 0, const std::vector<int64_t>& order = {});

}  // namespace lathe::onnx
