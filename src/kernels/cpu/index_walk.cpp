// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/index_walk.h"

namespace lathe::cpu {
namespace {

// Loops of which each operand has its own strides.
struct Loops {
  int rank = 0;
  int64_t dims[kMaxRank] = {};

  void add(int64_t dim) { dims[rank++] = dim; }
  TensorArg operand(const int64_t* strides) const {
    TensorArg arg;
    arg.rank = rank;
    std::copy_n(dims, rank, arg.dims);
    std::copy_n(strides, rank, arg.strides);
    return arg;
  }
};

// One nest of the loops of both operands.
LoopNest nest_of(const TensorArg& elements, const TensorArg& table) {
  return make_loop_nest({&elements, 1}, {&table, 1});
}

TensorArg dense(TensorArg arg) {
  int64_t stride = 1;
  for (int d = arg.rank; d-- > 0; stride *= std::max<int64_t>(arg.dims[d], 1)) arg.strides[d] = stride;
  return arg;
}

LoopNest nest_of(const TensorArg& order, const TensorArg& elements, const TensorArg& indices, const TensorArg& table) {
  const TensorArg inputs[] = {elements, indices, table};
  return make_loop_nest({&order, 1}, inputs);
}

}  // namespace

IndexWalk IndexWalk::along_axis(const TensorArg& table, const TensorArg& indices, const TensorArg& elements, int axis) {
  Loops tuples, run;
  int64_t of_indices[kMaxRank] = {}, of_table[kMaxRank] = {};
  for (int d = 0; d < axis; ++d) {
    of_table[d] = table.strides[d];
    tuples.add(table.dims[d]);
  }
  for (int d = 0; d < indices.rank; ++d) {
    of_indices[axis + d] = indices.strides[d];
    tuples.add(indices.dims[d]);
  }
  for (int d = axis + 1; d < table.rank; ++d) run.add(table.dims[d]);
  IndexWalk walk;
  walk.indices_ = indices;
  const TensorArg to = tuples.operand(elements.strides);
  walk.tuples_ = nest_of(to, to, tuples.operand(of_indices), tuples.operand(of_table));
  walk.run_ = nest_of(run.operand(elements.strides + tuples.rank), run.operand(table.strides + axis + 1));
  walk.depth_ = 1;
  walk.components_[0] = {0, table.dims[axis], table.strides[axis], -1};
  return walk;
}

IndexWalk IndexWalk::of_elements(const TensorArg& table, const TensorArg& indices, const TensorArg& elements,
                                 int axis) {
  Loops tuples;
  for (int d = 0; d < indices.rank; ++d) tuples.add(indices.dims[d]);
  int64_t of_table[kMaxRank] = {};
  std::copy_n(table.strides, table.rank, of_table);
  of_table[axis] = 0;
  IndexWalk walk;
  walk.indices_ = indices;
  const TensorArg to = tuples.operand(elements.strides);
  walk.tuples_ = nest_of(to, to, tuples.operand(indices.strides), tuples.operand(of_table));
  walk.run_ = nest_of(TensorArg(), TensorArg());
  walk.depth_ = 1;
  walk.components_[0] = {0, table.dims[axis], table.strides[axis], -1};
  return walk;
}

IndexWalk IndexWalk::of_tuples(const TensorArg& table, const TensorArg& indices, const TensorArg& elements, int batch) {
  const int loops = indices.rank - 1, depth = static_cast<int>(indices.dims[loops]), first = batch + depth;
  Loops tuples, run;
  for (int d = 0; d < loops; ++d) tuples.add(indices.dims[d]);
  for (int d = first; d < table.rank; ++d) run.add(table.dims[d]);
  int64_t of_table[kMaxRank] = {};
  std::copy_n(table.strides, batch, of_table);
  IndexWalk walk;
  walk.indices_ = indices;
  const TensorArg to = tuples.operand(elements.strides);
  walk.tuples_ = nest_of(dense(to), to, tuples.operand(indices.strides), tuples.operand(of_table));
  walk.run_ = nest_of(run.operand(elements.strides + loops), run.operand(table.strides + first));
  walk.depth_ = depth;
  for (int c = 0; c < depth; ++c)
    walk.components_[c] = {c * indices.strides[loops], table.dims[batch + c], table.strides[batch + c], batch + c};
  return walk;
}

int64_t IndexWalk::volume(const LoopNest& nest) {
  int64_t product = 1;
  for (int d = 0; d < nest.rank; ++d) product *= nest.dims[d];
  return product;
}

int IndexWalk::longest(const LoopNest& nest, int operand) {
  int best = 0;
  const auto length = [&](int d) { return nest.strides[operand][d] == 0 ? 0 : nest.dims[d]; };
  for (int d = 1; d < nest.rank; ++d)
    if (length(d) > length(best)) best = d;
  return length(best) == 0 ? -1 : best;
}

IndexWalk IndexWalk::part_of_tuples(int loop, int64_t begin, int64_t end) const {
  IndexWalk part = *this;
  part.tuples_.dims[loop] = end - begin;
  for (int k = 0; k < 4; ++k) part.base_[k] += begin * tuples_.strides[k][loop];
  return part;
}

IndexWalk IndexWalk::part_of_run(int loop, int64_t begin, int64_t end) const {
  IndexWalk part = *this;
  part.run_.dims[loop] = end - begin;
  part.base_[kElements] += begin * run_.strides[0][loop];
  part.base_[kTable] += begin * run_.strides[kRunTable][loop];
  return part;
}

IndexWalk::Block IndexWalk::block_at(int64_t begin, int64_t end, int64_t most) const {
  const int inner = tuples_.rank - 1;
  int64_t offsets[4];
  tuples_.offsets(tuples_.rank, begin, offsets);
  const int64_t left = tuples_.dims[inner] - begin % tuples_.dims[inner];
  return {base_[kElements] + offsets[kElements], tuples_.strides[kElements][inner], base_[kIndices] + offsets[kIndices],
          base_[kTable] + offsets[kTable], std::min({most, end - begin, left})};
}

IndexRow IndexWalk::row_of(const Block& block, int component) const {
  const Component& c = components_[component];
  const auto size = static_cast<int64_t>(size_of(indices_.dtype));
  return {indices_.dtype,
          indices_.as<std::byte>() + (block.indices + c.offset) * size,
          tuples_.strides[kIndices][tuples_.rank - 1],
          block.count,
          c.extent,
          c.stride};
}

// Writes the offset in the table of each tuple of the block.
std::optional<IndexWalk::Outside> IndexWalk::name(const Block& block, int64_t* table) const {
  static const auto add = LATHE_ISA_SELECT(add_offsets);
  const int64_t along = tuples_.strides[kTable][tuples_.rank - 1];
  for (int64_t i = 0; i < block.count; ++i) table[i] = block.table + i * along;
  for (int c = 0; c < depth_; ++c) {
    const IndexRow row = row_of(block, c);
    if (!add(row, table)) return outside_of(row, c);
  }
  return std::nullopt;
}

// The first index of the row that lies outside; there must be one.
IndexWalk::Outside IndexWalk::outside_of(const IndexRow& row, int component) const {
  TensorArg indices;
  indices.dtype = row.type;
  indices.data = const_cast<void*>(row.first);
  int64_t i = 0, index = 0;
  do index = integer_at(indices, i++ * row.step);
  while (index < 0 ? index + row.extent >= 0 : index < row.extent);
  return {index, row.extent, components_[component].axis};
}

tl::unexpected<Error> fail_outside(std::string_view op, const IndexWalk::Outside& outside) {
  if (outside.axis < 0)
    return fail(ErrorCode::execution_failed, "{}: index {} is outside [-{}, {})", op, outside.index, outside.extent,
                outside.extent);
  return fail(ErrorCode::execution_failed, "{}: index {} is outside [-{}, {}) of axis {}", op, outside.index,
              outside.extent, outside.extent, outside.axis);
}

int64_t integer_at(const TensorArg& tensor, int64_t offset) {
  switch (tensor.dtype) {
    case DType::i64:
    case DType::u64:
      return tensor.as<int64_t>()[offset];
    case DType::i32:
      return tensor.as<int32_t>()[offset];
    case DType::u32:
      return tensor.as<uint32_t>()[offset];
    case DType::i16:
      return tensor.as<int16_t>()[offset];
    case DType::u16:
      return tensor.as<uint16_t>()[offset];
    case DType::i8:
      return tensor.as<int8_t>()[offset];
    default:
      return tensor.as<uint8_t>()[offset];
  }
}

}  // namespace lathe::cpu
