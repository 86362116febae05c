// SPDX-License-Identifier: Apache-2.0
// Lists of tensors whose length only running tells, made of ops that all devices have. Positions outside of a list, and
// tensors that do not fit each other, are errors while running, of a gather whose index does not exist.
#pragma once

#include <optional>

#include "ir/builder.h"

namespace lathe {

// rows: the elements of all tensors, one tensor after the other, each in row-major order: T[elements]; of strings, u8
// [elements, bytes] (compose/text.h). dims: i64[tensors, rank], those of each tensor; -1 behind the dims of one that
// has fewer than `rank`.
struct TensorList {
  ir::Value *rows = nullptr, *dims = nullptr;
  bool is_text = false;
  bool is_mixed = false;  // tensors may have fewer dims than `rank`
  bool is_empty = false;  // known to have no tensors, so that `rank` says nothing

  int64_t rank() const { return *dims->shape()[1].as_constant(); }
};

// x where `number`, a scalar, is 0; else an error while running.
ir::Value* only_if_zero(ir::GraphBuilder& c, ir::Value* x, ir::Value* number);

// A list without tensors. dtype: of numbers; nothing for strings.
TensorList empty_list(ir::GraphBuilder& c, std::optional<DType> dtype, int64_t rank);

// The same list with `rank` columns of dims, which must not be fewer than it has unless it is known to be empty.
TensorList of_rank(ir::GraphBuilder& c, TensorList list, int64_t rank);

ir::Value* length_of(ir::GraphBuilder& c, const TensorList& list);  // i64[]

// Positions are i64[], and negative ones count from the end. The tensors of `list` have one rank.
ir::Value* element_at(ir::GraphBuilder& c, const TensorList& list, ir::Value* position);

// A null position is the end of the list for inserted(), and its last tensor for erased().
TensorList inserted(ir::GraphBuilder& c, const TensorList& list, ir::Value* x, ir::Value* position);
TensorList erased(ir::GraphBuilder& c, const TensorList& list, ir::Value* position);

// All tensors, of one rank, one behind the other along `axis`, or along a new one. There must be one at least.
ir::Value* joined(ir::GraphBuilder& c, const TensorList& list, int64_t axis);
ir::Value* stacked(ir::GraphBuilder& c, const TensorList& list, int64_t axis);

// x in parts along `axis`, of these extents, i64[parts]. Without `keeps`, extents are 1 and the dimension goes.
TensorList parted(ir::GraphBuilder& c, ir::Value* x, bool is_text, ir::Value* extents, int64_t axis, bool keeps);
// Extents of parts of `extent`, i64[1], that are `of_each` long, i64[1], but for the last.
ir::Value* equal_extents(ir::GraphBuilder& c, ir::Value* extent, ir::Value* of_each);

}  // namespace lathe
