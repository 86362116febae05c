// SPDX-License-Identifier: Apache-2.0
// Recognises what attention adds by the distance of a key from a query alone, as ALiBi and the relative positions of T5
// have it: there are as many numbers as distances, and not one for each query and key.
#pragma once

#include <map>
#include <utility>

#include "passes/affine.h"
#include "passes/rewrite.h"

namespace lathe {

// Makes rows of all distances. In a row, element key - query + queries - 1 of the keys' dimension stands for all such
// pairs; the dimension of queries is 1, or is not there.
class DistanceRows {
 public:
  // Queries and keys are rows of q and k.
  DistanceRows(Rewrite& r, ir::Value* q, ir::Value* k);

  // The row of a value [..., queries, keys]; null where its elements are not known to depend on the distance alone.
  ir::Value* of(ir::Value* value) { return row_of(value, {2, 1}); }

 private:
  // The dimensions of queries and keys, counted from behind: 1 is the last one.
  struct Places {
    int64_t query, key;
    auto operator<=>(const Places&) const = default;
  };
  bool is_free(const ir::Value* value, Places at) const;
  ir::Value* row_of(ir::Value* value, Places at);
  ir::Value* made_row(ir::Value* value, Places at);
  ir::Value* constant_row(const Tensor& constant, Places at);
  ir::Value* counted(const Affine& affine, DType dtype, Places at);
  std::optional<Affine> distance_in(const Affine& affine, Places at) const;
  ir::Value* pointwise_row(const ir::Node& node, Places at);
  ir::Value* compared_row(const ir::Node& node, Places at);
  ir::Value* view_row(const ir::Node& node, Places at);
  ir::Value* transposed_row(const ir::Node& node, Places at);
  ir::Value* gathered_row(const ir::Node& node, Places at);
  ir::Value* ranked(ir::Value* row, int64_t rank);

  Rewrite& r_;
  ir::Value *const q_, *const k_;
  const Expr queries_, keys_;
  ir::Value* numbers_ = nullptr;  // 0, 1, ... of all distances
  std::map<std::pair<const ir::Value*, Places>, ir::Value*> rows_;
};

}  // namespace lathe
