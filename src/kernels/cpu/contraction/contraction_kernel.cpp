// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/divide.h"
#include "kernels/cpu/contraction/contraction.h"
#include "kernels/cpu/contraction/lanes.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {

bool contraction::is_supported(DType a, DType b, DType result) {
  const auto is_small = [](DType type) { return is_integer(type) && size_of(type) == 1; };
  if (is_small(a) && is_small(b)) return result == DType::i32 || (a == b && result == a);
  return a == b && result == a && (a == DType::f32 || a == DType::f64 || is_integer(a));
}

namespace {

using namespace contraction;

constexpr int64_t kMinTaskProducts = 20000;  // about 5 us

// An axis with its extent, and its stride in each tensor.
struct Loop {
  int64_t extent = 1;
  int64_t strides[kOperands] = {};
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

Nest make_nest(std::span<const ContractionAxis> axes, const TensorArg* const* tensors) {
  Nest nest;
  for (const ContractionAxis& axis : axes) {
    Loop loop;
    for (int t = 0; t < kOperands; ++t)
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
  explicit ContractionKernel(std::vector<ContractionAxis> axes) : axes_(std::move(axes)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int threads) const override {
    return sizeof(Scratch) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  template <class Lane>
  void run_block(const Launch& launch, const Nest& nest, int64_t unit, Scratch& scratch) const;

  const std::vector<ContractionAxis> axes_;
};

Result<> ContractionKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 2 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "contraction: {} inputs and {} outputs given, 2 and 1 expected",
                inputs.size(), outputs.size());
  const TensorArg* const tensors[] = {&inputs[0], &inputs[1], &outputs[0]};
  uint32_t covered[kOperands] = {};
  for (const ContractionAxis& axis : axes_) {
    int64_t extent = 1;
    for (int t = 0; t < kOperands; ++t)
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
  if (!is_supported(inputs[0].dtype, inputs[1].dtype, outputs[0].dtype))
    return fail(ErrorCode::type_mismatch, "contraction: {} of {} and {}", name_of(outputs[0].dtype),
                name_of(inputs[0].dtype), name_of(inputs[1].dtype));
  for (int t = 0; t < kOperands; ++t)
    if (covered[t] != (1u << tensors[t]->rank) - 1)
      return fail(ErrorCode::shape_mismatch, "contraction: a dimension has no axis");
  return {};
}

struct Offsets {
  const int64_t* values;
  int64_t count;
};

// block[r][c] = tensor[base + rows[r] + columns[c]]
template <class Lane>
void gather(const TensorArg& tensor, int64_t base, Offsets rows, Offsets columns, Lane* block, int64_t pitch) {
  with_elements<Lane>(tensor.dtype, [&](auto element) {
    using T = decltype(element);
    for (int64_t r = 0; r < rows.count; ++r) {
      const T* from = tensor.as<T>() + base + rows.values[r];
      for (int64_t c = 0; c < columns.count; ++c) block[r * pitch + c] = static_cast<Lane>(from[columns.values[c]]);
    }
  });
}

// One block of the result.
template <class Lane>
void ContractionKernel::run_block(const Launch& launch, const Nest& nest, int64_t unit, Scratch& scratch) const {
  static const auto multiply = LATHE_ISA_SELECT(multiply_blocks);
  const int64_t column_blocks = ceil_div(nest.columns.volume, kColumns);
  const int64_t row_blocks = ceil_div(nest.rows.volume, kRows);
  const int64_t column = unit % column_blocks * kColumns, row = unit / column_blocks % row_blocks * kRows;
  const int64_t batch = unit / column_blocks / row_blocks;
  const int64_t rows = std::min(kRows, nest.rows.volume - row);
  const int64_t columns = std::min(kColumns, nest.columns.volume - column);
  const TensorArg &a = launch.inputs[0], &b = launch.inputs[1], &result = launch.outputs[0];
  nest.rows.offsets(kA, row, rows, scratch.row_offsets);
  nest.rows.offsets(kResult, row, rows, scratch.result_rows);
  nest.columns.offsets(kB, column, columns, scratch.column_offsets);
  nest.columns.offsets(kResult, column, columns, scratch.result_columns);
  auto* const packed_a = reinterpret_cast<Lane*>(scratch.a);
  auto* const packed_b = reinterpret_cast<Lane*>(scratch.b);
  auto* const sums = reinterpret_cast<Lane*>(scratch.sums);
  std::fill_n(sums, rows * kColumns, Lane{0});
  for (int64_t k = 0; k < nest.depth.volume; k += kDepth) {
    const int64_t depth = std::min(kDepth, nest.depth.volume - k);
    nest.depth.offsets(kA, k, depth, scratch.a_offsets);
    nest.depth.offsets(kB, k, depth, scratch.b_offsets);
    gather(a, nest.batches.offset(kA, batch), {scratch.row_offsets, rows}, {scratch.a_offsets, depth}, packed_a,
           kDepth);
    gather(b, nest.batches.offset(kB, batch), {scratch.b_offsets, depth}, {scratch.column_offsets, columns}, packed_b,
           kColumns);
    for (int64_t l = 0; l < depth; ++l)
      std::fill(packed_b + l * kColumns + columns, packed_b + (l + 1) * kColumns, Lane{0});
    multiply(lane_of(a.dtype), packed_a, packed_b, sums, rows, depth, columns);
  }
  with_elements<Lane>(result.dtype, [&](auto element) {
    using T = decltype(element);
    T* to = result.as<T>() + nest.batches.offset(kResult, batch);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        to[scratch.result_rows[r] + scratch.result_columns[c]] = static_cast<T>(sums[r * kColumns + c]);
  });
}

void ContractionKernel::run(const Launch& launch) const {
  if (launch.outputs[0].volume() == 0) return;
  const TensorArg* const tensors[] = {&launch.inputs[0], &launch.inputs[1], &launch.outputs[0]};
  const Nest nest = make_nest(axes_, tensors);
  const int64_t units =
      nest.batches.volume * ceil_div(nest.rows.volume, kRows) * ceil_div(nest.columns.volume, kColumns);
  const int64_t products = std::min(kRows, nest.rows.volume) * kColumns * std::max<int64_t>(nest.depth.volume, 1);
  launch.pool.parallel_for(units, std::max<int64_t>(1, kMinTaskProducts / products),
                           [&](int64_t begin, int64_t end, int worker) {
                             Scratch& scratch = reinterpret_cast<Scratch*>(launch.workspace)[worker];
                             with_lane(launch.inputs[0].dtype, [&](auto lane) {
                               for (int64_t unit = begin; unit < end; ++unit)
                                 run_block<decltype(lane)>(launch, nest, unit, scratch);
                             });
                           });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_contraction(const Record& record) {
  const auto params = decode_params<ContractionParams>(record.params);
  if (record.program || !params || params->axes.size() > kMaxAxes) return refuse_params("contraction");
  std::array<uint32_t, kOperands> seen{};
  for (const ContractionAxis& axis : params->axes)
    for (size_t t = 0; t < kOperands; ++t) {
      const uint32_t dims = axis.dims[t];
      if (dims >> kMaxRank != 0 || (seen[t] & dims) != 0 || (t == kResult && !std::has_single_bit(dims) && dims != 0))
        return refuse_params("contraction");
      seen[t] |= dims;
    }
  return std::make_unique<ContractionKernel>(params->axes);
}

}  // namespace lathe::cpu
