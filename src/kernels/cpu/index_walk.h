// SPDX-License-Identifier: Apache-2.0
// The walk over indices that the kernels gather and scatter share. The `table` is the tensor that indices point into:
// gather reads it, scatter writes it. `elements` is the other one, gather's output or scatter's updates.
#pragma once

#include <algorithm>
#include <optional>

#include "base/result.h"
#include "kernels/cpu/index_offsets.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu {

// Each tuple of indices picks one sub-tensor of the table, the run, and pairs it with a run of `elements` of the same
// shape. Example: table [10, 3], indices [5], axis 0: five tuples of one index, and runs of 3 elements.
class IndexWalk {
 public:
  // output[outer..., i..., inner...] = table[outer..., indices[i...], inner...]
  static IndexWalk along_axis(const TensorArg& table, const TensorArg& indices, const TensorArg& elements, int axis);
  // elements[i...] = table[i... with the axis's index replaced by indices[i...]]
  static IndexWalk of_elements(const TensorArg& table, const TensorArg& indices, const TensorArg& elements, int axis);
  // elements[b..., i..., run...] = table[b..., indices[b..., i..., :]..., run...], with `batch` dimensions b. Tuples
  // are visited in row-major order, in which ScatterND applies its updates.
  static IndexWalk of_tuples(const TensorArg& table, const TensorArg& indices, const TensorArg& elements, int batch);

  // An index that lies outside its axis.
  struct Outside {
    int64_t index, extent;
    int axis;
  };

  int64_t tuples() const { return volume(tuples_); }
  int64_t run_volume() const { return volume(run_); }

  // The longest loop that threads may divide when they write the table: no two of its iterations touch the same element
  // of it. The one over tuples is for walks that of_elements() made; -1 where there is none.
  int loop_of_tuples() const { return longest(tuples_, kTable); }
  int loop_of_run() const { return longest(run_, kRunTable); }
  int64_t tuples_along(int loop) const { return tuples_.dims[loop]; }
  int64_t run_along(int loop) const { return run_.dims[loop]; }
  IndexWalk part_of_tuples(int loop, int64_t begin, int64_t end) const;
  IndexWalk part_of_run(int loop, int64_t begin, int64_t end) const;

  // Calls body(offset in elements, its step from tuple to tuple, offset in the table of each tuple, count) for blocks
  // of the tuples [begin, end). Stops at the block in which an index lies outside its axis, before its body, and
  // returns that index.
  template <class F>
  std::optional<Outside> for_each_block(int64_t begin, int64_t end, F&& body) const {
    int64_t table[kBlock];
    while (begin < end) {
      const Block block = block_at(begin, end, kBlock);
      if (const auto outside = name(block, table)) return outside;
      body(block.elements, block.step, static_cast<const int64_t*>(table), block.count);
      begin += block.count;
    }
    return std::nullopt;
  }

  // The same where each tuple is one index and each run one element, for a body that reads the indices itself:
  // body(indices, offset in elements, its step, offset in the table, its step) returns false when one lies outside.
  bool has_single_indices() const { return depth_ == 1 && run_volume() == 1; }
  template <class F>
  std::optional<Outside> for_each_index_row(int64_t begin, int64_t end, F&& body) const {
    while (begin < end) {
      const Block block = block_at(begin, end, kRow);
      const IndexRow row = row_of(block, 0);
      if (!body(row, block.elements, block.step, block.table, tuples_.strides[kTable][tuples_.rank - 1]))
        return outside_of(row, 0);
      begin += block.count;
    }
    return std::nullopt;
  }

  // Whether each run is contiguous in both.
  bool has_dense_runs() const { return run_.rank == 1 && run_.strides[0][0] == 1 && run_.strides[kRunTable][0] == 1; }
  // Calls body(offset in elements, its step, offset in the table, its step, count) for the rows of one run.
  template <class F>
  void for_each_row(int64_t elements, int64_t table, F&& body) const {
    const int inner = run_.rank - 1;
    int64_t rows = 1;
    for (int d = 0; d < inner; ++d) rows *= run_.dims[d];
    for (int64_t row = 0; row < rows; ++row) {
      int64_t offsets[2];
      run_.offsets(inner, row, offsets);
      body(elements + offsets[0], run_.strides[0][inner], table + offsets[1], run_.strides[kRunTable][inner],
           run_.dims[inner]);
    }
  }

 private:
  static constexpr int64_t kBlock = 256, kRow = 4096;
  // Operands of the tuples' loop nest; operand 0 is there for its strides alone, which decide the order of the loops.
  static constexpr int kElements = 1, kIndices = 2, kTable = 3;
  static constexpr int kRunTable = 1;  // an operand of the run's loop nest; operand 0 is the elements
  struct Component {
    int64_t offset;          // of its index from the start of the tuple
    int64_t extent, stride;  // of the table's axis
    int axis;                // the table's axis for messages; -1 = messages do not say it
  };
  struct Block {
    int64_t elements, step, indices, table, count;
  };

  static int64_t volume(const LoopNest& nest);
  static int longest(const LoopNest& nest, int operand);
  Block block_at(int64_t begin, int64_t end, int64_t most) const;
  IndexRow row_of(const Block& block, int component) const;
  std::optional<Outside> name(const Block& block, int64_t* table) const;
  Outside outside_of(const IndexRow& row, int component) const;

  TensorArg indices_;
  LoopNest tuples_, run_;
  int64_t base_[4] = {};  // of the tuples' operands
  int depth_ = 0;
  Component components_[kMaxRank] = {};
};

// Runs lie anywhere in the table, so that the hardware does not foresee them: each is prefetched kAhead tuples early.
inline constexpr int64_t kAhead = 4;
inline void prefetch_run(const void* run, size_t bytes) {
  constexpr size_t kLine = 64, kMost = 4096;
  const auto* first = static_cast<const char*>(run);
  for (size_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(first + i);
}

// The error that the op's plain evaluation gives.
tl::unexpected<Error> fail_outside(std::string_view op, const IndexWalk::Outside& outside);

// One element of a tensor of integers, at an offset in elements; u64 is read as i64.
int64_t integer_at(const TensorArg& tensor, int64_t offset);

}  // namespace lathe::cpu
