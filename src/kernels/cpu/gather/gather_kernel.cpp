// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gather/gather.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskBytes = 32 << 10;  // about 5 us

// Data and indices as the walk over the output reads them: of its dims, and without a stride where it does not read
// them along a dimension. Data is read along the axis by the index alone.
struct Views {
  TensorArg data, indices;
  int64_t extent, stride;  // of the axis
};

class GatherKernel final : public Kernel {
 public:
  GatherKernel(GatherMode mode, int axis) : mode_(mode), axis_(axis) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  Views views(std::span<const TensorArg> inputs, const TensorArg& output) const;

  const GatherMode mode_;
  const int axis_;
};

Result<> GatherKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 2 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "gather: {} inputs and {} outputs given, 2 and 1 expected", inputs.size(),
                outputs.size());
  const TensorArg &data = inputs[0], &indices = inputs[1], &output = outputs[0];
  if (!is_integer(indices.dtype) || data.dtype != output.dtype)
    return fail(ErrorCode::type_mismatch, "gather: {} of {} by {}", name_of(output.dtype), name_of(data.dtype),
                name_of(indices.dtype));
  bool fits = axis_ < data.rank;
  if (fits && mode_ == GatherMode::elements) {
    fits = data.rank == output.rank && indices.rank == output.rank;
    for (int d = 0; fits && d < output.rank; ++d)
      fits = indices.dims[d] == output.dims[d] && (d == axis_ || output.dims[d] <= data.dims[d]);
  } else if (fits) {
    fits = output.rank == data.rank - 1 + indices.rank;
    for (int d = 0; fits && d < output.rank; ++d)
      fits = output.dims[d] == (d < axis_                  ? data.dims[d]
                                : d < axis_ + indices.rank ? indices.dims[d - axis_]
                                                           : data.dims[d - indices.rank + 1]);
  }
  if (!fits) return fail(ErrorCode::shape_mismatch, "gather: data, indices and output do not fit along axis {}", axis_);
  return {};
}

Views GatherKernel::views(std::span<const TensorArg> inputs, const TensorArg& output) const {
  const TensorArg &data = inputs[0], &indices = inputs[1];
  Views views{data, indices, data.dims[axis_], data.strides[axis_]};
  for (TensorArg* view : {&views.data, &views.indices}) {
    view->rank = output.rank;
    std::copy_n(output.dims, output.rank, view->dims);
  }
  for (int d = 0; d < output.rank; ++d) {
    if (mode_ == GatherMode::elements) {
      views.data.strides[d] = d == axis_ ? 0 : data.strides[d];
      continue;
    }
    const bool by_index = d >= axis_ && d < axis_ + indices.rank;
    views.indices.strides[d] = by_index ? indices.strides[d - axis_] : 0;
    views.data.strides[d] = by_index ? 0 : data.strides[d < axis_ ? d : d - indices.rank + 1];
  }
  return views;
}

int64_t index_at(const TensorArg& indices, int64_t offset) {
  switch (indices.dtype) {
    case DType::i64:
    case DType::u64:
      return indices.as<int64_t>()[offset];
    case DType::i32:
      return indices.as<int32_t>()[offset];
    case DType::u32:
      return indices.as<uint32_t>()[offset];
    case DType::i16:
      return indices.as<int16_t>()[offset];
    case DType::u16:
      return indices.as<uint16_t>()[offset];
    case DType::i8:
      return indices.as<int8_t>()[offset];
    default:
      return indices.as<uint8_t>()[offset];
  }
}

// One row of the walk: the index changes with each element, or is one for all of them.
struct Row {
  int64_t count;
  int64_t output, data, indices;  // offsets
  int64_t output_stride, data_stride, index_stride;
};

template <class T>
class Gather {
 public:
  Gather(const Views& views, const TensorArg& output) : views_(views), from_(views.data.as<T>()), to_(output.as<T>()) {}

  // The first index that lies outside, if any.
  std::optional<int64_t> run(const Row& row) const {
    if (row.index_stride == 0) {
      int64_t index = index_at(views_.indices, row.indices);
      if (!wrap(index)) return index;
      copy(row, from_ + row.data + index * views_.stride);
      return std::nullopt;
    }
    for (int64_t i = 0; i < row.count; ++i) {
      int64_t index = index_at(views_.indices, row.indices + i * row.index_stride);
      if (!wrap(index)) return index;
      to_[row.output + i * row.output_stride] = from_[row.data + i * row.data_stride + index * views_.stride];
    }
    return std::nullopt;
  }

 private:
  bool wrap(int64_t& index) const {
    const int64_t wrapped = index < 0 ? index + views_.extent : index;
    if (wrapped < 0 || wrapped >= views_.extent) return false;
    index = wrapped;
    return true;
  }
  void copy(const Row& row, const T* from) const {
    T* to = to_ + row.output;
    if (row.data_stride == 1 && row.output_stride == 1)
      std::memcpy(to, from, static_cast<size_t>(row.count) * sizeof(T));
    else
      for (int64_t i = 0; i < row.count; ++i) to[i * row.output_stride] = from[i * row.data_stride];
  }

  const Views& views_;
  const T* from_;
  T* to_;
};

// An index that lies outside, if any.
template <class T>
std::optional<int64_t> gather_all(const Launch& launch, const Views& views) {
  const TensorArg inputs[] = {views.data, views.indices};
  const LoopNest nest = make_loop_nest(launch.outputs, inputs);
  const int inner = nest.rank - 1;
  int64_t rows = 1;
  for (int d = 0; d < inner; ++d) rows *= nest.dims[d];
  const Gather<T> gather(views, launch.outputs[0]);
  std::atomic<bool> fails = false;
  std::atomic<int64_t> outside = 0;
  const int64_t row_bytes = nest.dims[inner] * static_cast<int64_t>(sizeof(T));
  launch.pool.parallel_for(rows, kMinTaskBytes / row_bytes + 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t offsets[3];
      nest.offsets(inner, i, offsets);
      const std::optional<int64_t> found =
          gather.run({nest.dims[inner], offsets[0], offsets[1], offsets[2], nest.strides[0][inner],
                      nest.strides[1][inner], nest.strides[2][inner]});
      if (!found) continue;
      outside = *found;
      fails = true;
    }
  });
  return fails ? std::optional(outside.load()) : std::nullopt;
}

Result<> GatherKernel::try_run(const Launch& launch) const {
  const TensorArg& output = launch.outputs[0];
  if (output.volume() == 0) return {};
  const Views all = views(launch.inputs, output);
  std::optional<int64_t> outside;
  switch (size_of(output.dtype)) {
    case 1:
      outside = gather_all<uint8_t>(launch, all);
      break;
    case 2:
      outside = gather_all<uint16_t>(launch, all);
      break;
    case 4:
      outside = gather_all<uint32_t>(launch, all);
      break;
    default:
      outside = gather_all<uint64_t>(launch, all);
  }
  if (!outside) return {};
  return fail(ErrorCode::execution_failed, "gather: index {} is outside [-{}, {})", *outside, all.extent, all.extent);
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_gather(const Record& record) {
  const std::span<const int64_t> p = record.params;
  if (record.program || p.size() != 2 || (p[0] != 0 && p[0] != 1) || p[1] < 0 || p[1] >= kMaxRank)
    return fail(ErrorCode::plan_malformed, "gather: the parameters of the record are not valid");
  return std::make_unique<GatherKernel>(static_cast<GatherMode>(p[0]), static_cast<int>(p[1]));
}

}  // namespace lathe::cpu
