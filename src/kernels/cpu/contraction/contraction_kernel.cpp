// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/contraction/contraction.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {

bool contraction::is_supported(DType type) {
  return type == DType::f32 || type == DType::f64 || (is_integer(type) && size_of(type) >= 4);
}

namespace {

using namespace contraction;

constexpr int64_t kMinTaskProducts = 20000;  // about 5 us

enum { kA, kB, kResult, kTensors };

struct AxisBits {
  uint32_t dims[kTensors];
};

// An axis with its extent, and its stride in each tensor.
struct Loop {
  int64_t extent = 1;
  int64_t strides[kTensors] = {};
};

// Loops that are walked as one, the last innermost.
struct LoopGroup {
  int count = 0;
  int64_t volume = 1;
  Loop loops[kMaxAxes];

  void add(const Loop& loop) {
    loops[count++] = loop;
    volume *= loop.extent;
  }
  int64_t offset(int tensor, int64_t index) const {
    int64_t offset = 0;
    for (int i = count - 1; i >= 0; --i) {
      offset += index % loops[i].extent * loops[i].strides[tensor];
      index /= loops[i].extent;
    }
    return offset;
  }
  void offsets(int tensor, int64_t begin, int64_t n, int64_t* result) const {
    if (count <= 1) {
      const int64_t stride = count ? loops[0].strides[tensor] : 0;
      for (int64_t i = 0; i < n; ++i) result[i] = (begin + i) * stride;
      return;
    }
    for (int64_t i = 0; i < n; ++i) result[i] = offset(tensor, begin + i);
  }
};

// What each axis is to a product of matrices.
struct Nest {
  LoopGroup batches, rows, columns, depth;
};

Nest make_nest(std::span<const AxisBits> axes, const TensorArg* const* tensors) {
  Nest nest;
  for (const AxisBits& axis : axes) {
    Loop loop;
    for (int t = 0; t < kTensors; ++t)
      for (int d = 0; d < tensors[t]->rank; ++d) {
        if (!(axis.dims[t] >> d & 1) || tensors[t]->dims[d] == 1) continue;
        loop.extent = tensors[t]->dims[d];
        loop.strides[t] += tensors[t]->strides[d];
      }
    if (loop.extent == 1) continue;
    if (axis.dims[kResult] == 0)
      nest.depth.add(loop);
    else if (loop.strides[kB] == 0)
      nest.rows.add(loop);
    else if (loop.strides[kA] == 0)
      nest.columns.add(loop);
    else
      nest.batches.add(loop);
  }
  return nest;
}

// The memory of one thread.
struct Scratch {
  int64_t a_offsets[kDepth], b_offsets[kDepth];
  int64_t row_offsets[kRows], result_rows[kRows];
  int64_t column_offsets[kColumns], result_columns[kColumns];
  alignas(64) std::byte a[kRows * kDepth * 8], b[kDepth * kColumns * 8], sums[kRows * kColumns * 8];
};

class ContractionKernel final : public Kernel {
 public:
  explicit ContractionKernel(std::vector<AxisBits> axes) : axes_(std::move(axes)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int threads) const override {
    return sizeof(Scratch) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  template <class Bits>
  void run_block(const Launch& launch, const Nest& nest, int64_t unit, Scratch& scratch) const;

  const std::vector<AxisBits> axes_;
};

Result<> ContractionKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 2 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "contraction: {} inputs and {} outputs given, 2 and 1 expected",
                inputs.size(), outputs.size());
  const TensorArg* const tensors[] = {&inputs[0], &inputs[1], &outputs[0]};
  uint32_t covered[kTensors] = {};
  for (const AxisBits& axis : axes_) {
    int64_t extent = 1;
    for (int t = 0; t < kTensors; ++t)
      for (int d = 0; d < kMaxRank; ++d) {
        if (!(axis.dims[t] >> d & 1)) continue;
        if (d >= tensors[t]->rank) return fail(ErrorCode::shape_mismatch, "contraction: there is no dimension {}", d);
        const int64_t dim = tensors[t]->dims[d];
        if (extent != 1 && dim != extent && (dim != 1 || t == kResult))
          return fail(ErrorCode::shape_mismatch, "contraction: extents {} and {} along one axis", extent, dim);
        if (dim != 1) extent = dim;
        covered[t] |= 1u << d;
      }
  }
  for (int t = 0; t < kTensors; ++t) {
    if (!is_supported(tensors[t]->dtype) || tensors[t]->dtype != inputs[0].dtype)
      return fail(ErrorCode::type_mismatch, "contraction: {} of {} and {}", name_of(outputs[0].dtype),
                  name_of(inputs[0].dtype), name_of(inputs[1].dtype));
    if (covered[t] != (1u << tensors[t]->rank) - 1)
      return fail(ErrorCode::shape_mismatch, "contraction: a dimension has no axis");
  }
  return {};
}

int64_t blocks_of(int64_t extent, int64_t block) { return (extent + block - 1) / block; }

// One block of the result.
template <class Bits>
void ContractionKernel::run_block(const Launch& launch, const Nest& nest, int64_t unit, Scratch& scratch) const {
  static const auto multiply = LATHE_ISA_SELECT(multiply_blocks);
  const int64_t column_blocks = blocks_of(nest.columns.volume, kColumns);
  const int64_t row_blocks = blocks_of(nest.rows.volume, kRows);
  const int64_t column = unit % column_blocks * kColumns, row = unit / column_blocks % row_blocks * kRows;
  const int64_t batch = unit / column_blocks / row_blocks;
  const int64_t rows = std::min(kRows, nest.rows.volume - row);
  const int64_t columns = std::min(kColumns, nest.columns.volume - column);
  const Bits* a = launch.inputs[0].as<Bits>() + nest.batches.offset(kA, batch);
  const Bits* b = launch.inputs[1].as<Bits>() + nest.batches.offset(kB, batch);
  Bits* result = launch.outputs[0].as<Bits>() + nest.batches.offset(kResult, batch);
  nest.rows.offsets(kA, row, rows, scratch.row_offsets);
  nest.rows.offsets(kResult, row, rows, scratch.result_rows);
  nest.columns.offsets(kB, column, columns, scratch.column_offsets);
  nest.columns.offsets(kResult, column, columns, scratch.result_columns);
  Bits* const packed_a = reinterpret_cast<Bits*>(scratch.a);
  Bits* const packed_b = reinterpret_cast<Bits*>(scratch.b);
  Bits* const sums = reinterpret_cast<Bits*>(scratch.sums);
  std::fill_n(sums, rows * kColumns, Bits{0});  // 0 has the same bits in all types
  for (int64_t k = 0; k < nest.depth.volume; k += kDepth) {
    const int64_t depth = std::min(kDepth, nest.depth.volume - k);
    nest.depth.offsets(kA, k, depth, scratch.a_offsets);
    nest.depth.offsets(kB, k, depth, scratch.b_offsets);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t l = 0; l < depth; ++l) packed_a[r * kDepth + l] = a[scratch.row_offsets[r] + scratch.a_offsets[l]];
    for (int64_t l = 0; l < depth; ++l) {
      const Bits* from = b + scratch.b_offsets[l];
      Bits* to = packed_b + l * kColumns;
      for (int64_t c = 0; c < columns; ++c) to[c] = from[scratch.column_offsets[c]];
      std::fill(to + columns, to + kColumns, Bits{0});
    }
    multiply(launch.outputs[0].dtype, packed_a, packed_b, sums, rows, depth);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[scratch.result_rows[r] + scratch.result_columns[c]] = sums[r * kColumns + c];
}

void ContractionKernel::run(const Launch& launch) const {
  if (launch.outputs[0].volume() == 0) return;
  const TensorArg* const tensors[] = {&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]};
  const Nest nest = make_nest(axes_, tensors);
  const int64_t units =
      nest.batches.volume * blocks_of(nest.rows.volume, kRows) * blocks_of(nest.columns.volume, kColumns);
  const int64_t products = std::min(kRows, nest.rows.volume) * kColumns * std::max<int64_t>(nest.depth.volume, 1);
  launch.pool.parallel_for(units, std::max<int64_t>(1, kMinTaskProducts / products),
                           [&](int64_t begin, int64_t end, int worker) {
                             Scratch& scratch = reinterpret_cast<Scratch*>(launch.workspace)[worker];
                             for (int64_t unit = begin; unit < end; ++unit)
                               if (size_of(launch.outputs[0].dtype) == 8)
                                 run_block<uint64_t>(launch, nest, unit, scratch);
                               else
                                 run_block<uint32_t>(launch, nest, unit, scratch);
                           });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_contraction(const Record& record) {
  const std::span<const int64_t> p = record.params;
  const auto malformed = [] {
    return fail(ErrorCode::plan_malformed, "contraction: the parameters of the record are not valid");
  };
  if (record.program || p.empty() || p[0] < 0 || p[0] > kMaxAxes ||
      p.size() != 1 + kTensors * static_cast<size_t>(p[0]))
    return malformed();
  std::vector<AxisBits> axes;
  uint32_t seen[kTensors] = {};
  for (size_t i = 1; i < p.size(); i += kTensors) {
    AxisBits axis{};
    for (size_t t = 0; t < kTensors; ++t) {
      if (p[i + t] < 0 || p[i + t] >= 1 << kMaxRank || (seen[t] & static_cast<uint32_t>(p[i + t]))) return malformed();
      axis.dims[t] = static_cast<uint32_t>(p[i + t]);
      seen[t] |= axis.dims[t];
    }
    if ((axis.dims[kResult] & (axis.dims[kResult] - 1)) != 0) return malformed();
    axes.push_back(axis);
  }
  return std::make_unique<ContractionKernel>(std::move(axes));
}

}  // namespace lathe::cpu
