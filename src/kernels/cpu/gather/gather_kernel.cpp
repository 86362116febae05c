// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gather/gather.h"

#include <cstring>
#include <mutex>

#include "base/for_size.h"
#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskBytes = 32 << 10;  // about 5 us
constexpr std::string_view kNames[] = {"gather", "gather_elements", "gather_nd"};

class GatherKernel final : public Kernel {
 public:
  GatherKernel(GatherMode mode, int axis) : mode_(mode), axis_(axis) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  std::string_view name() const { return kNames[static_cast<size_t>(mode_)]; }
  bool fits(const TensorArg& data, const TensorArg& indices, const TensorArg& output) const;
  IndexWalk walk(const Launch& launch) const;
  std::optional<IndexWalk::Outside> find_outside(const Launch& launch) const;

  const GatherMode mode_;
  const int axis_;
};

bool GatherKernel::fits(const TensorArg& data, const TensorArg& indices, const TensorArg& output) const {
  if (mode_ == GatherMode::elements) {
    bool same = axis_ < data.rank && data.rank == output.rank && indices.rank == output.rank;
    for (int d = 0; same && d < output.rank; ++d)
      same = indices.dims[d] == output.dims[d] && (d == axis_ || output.dims[d] <= data.dims[d]);
    return same;
  }
  // What the output has of the indices, and where data goes on behind it.
  const bool tuples = mode_ == GatherMode::tuples;
  if (tuples ? indices.rank < 1 || axis_ >= indices.rank : axis_ >= data.rank) return false;
  const int last = tuples ? indices.rank - 1 : axis_ + indices.rank;
  const int64_t next = tuples ? axis_ + indices.dims[indices.rank - 1] : axis_ + 1;
  if (next > data.rank || output.rank != last + data.rank - next) return false;
  for (int d = 0; d < output.rank; ++d) {
    const int64_t index = tuples ? d : d - axis_;
    if (d < axis_ && output.dims[d] != data.dims[d]) return false;
    if (d < last && index >= 0 && output.dims[d] != indices.dims[index]) return false;
    if (d >= last && output.dims[d] != data.dims[next + d - last]) return false;
  }
  return true;
}

Result<> GatherKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != 2 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "{}: {} inputs and {} outputs given, 2 and 1 expected", name(),
                inputs.size(), outputs.size());
  const TensorArg &data = inputs[0], &indices = inputs[1], &output = outputs[0];
  if (!is_integer(indices.dtype) || data.dtype != output.dtype)
    return fail(ErrorCode::type_mismatch, "{}: {} of {} by {}", name(), name_of(output.dtype), name_of(data.dtype),
                name_of(indices.dtype));
  if (!fits(data, indices, output))
    return fail(ErrorCode::shape_mismatch, "{}: data, indices and output do not fit along axis {}", name(), axis_);
  return {};
}

IndexWalk GatherKernel::walk(const Launch& launch) const {
  const TensorArg &data = launch.inputs[0], &indices = launch.inputs[1], &output = launch.outputs[0];
  switch (mode_) {
    case GatherMode::gather:
      return IndexWalk::along_axis(data, indices, output, axis_);
    case GatherMode::elements:
      return IndexWalk::of_elements(data, indices, output, axis_);
    case GatherMode::tuples:
      break;
  }
  return IndexWalk::of_tuples(data, indices, output, axis_);
}

// Copies the run of each tuple of a block.
template <class T>
void copy_runs(const IndexWalk& walk, const T* from, T* to, int64_t at, int64_t step, const int64_t* offsets,
               int64_t count) {
  const int64_t run = walk.run_volume();
  if (walk.has_dense_runs()) {
    for (int64_t i = 0; i < count; ++i) {
      if (i + kAhead < count) prefetch_run(from + offsets[i + kAhead], static_cast<size_t>(run) * sizeof(T));
      std::memcpy(to + at + i * step, from + offsets[i], static_cast<size_t>(run) * sizeof(T));
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    walk.for_each_row(at + i * step, offsets[i],
                      [&](int64_t element, int64_t element_step, int64_t place, int64_t place_step, int64_t length) {
                        for (int64_t j = 0; j < length; ++j)
                          to[element + j * element_step] = from[place + j * place_step];
                      });
}

template <class T>
std::optional<IndexWalk::Outside> gather_part(const T* from, T* to, const IndexWalk& walk, int64_t begin, int64_t end) {
  static const auto take_elements = LATHE_ISA_SELECT(take_elements);
  if (walk.has_single_indices())
    return walk.for_each_index_row(begin, end,
                                   [&](const IndexRow& row, int64_t at, int64_t step, int64_t base, int64_t along) {
                                     return take_elements(row, sizeof(T), from + base, along, to + at, step);
                                   });
  if (walk.run_volume() == 1)
    return walk.for_each_block(begin, end, [&](int64_t at, int64_t step, const int64_t* offsets, int64_t count) {
      for (int64_t i = 0; i < count; ++i) to[at + i * step] = from[offsets[i]];
    });
  return walk.for_each_block(begin, end, [&](int64_t at, int64_t step, const int64_t* offsets, int64_t count) {
    copy_runs(walk, from, to, at, step, offsets, count);
  });
}

// An index that lies outside, if any.
template <class T>
std::optional<IndexWalk::Outside> gather_as(const T* from, T* to, const IndexWalk& walk, ThreadPool& pool) {
  std::mutex mutex;
  std::optional<IndexWalk::Outside> outside;
  const int64_t grain = kMinTaskBytes / (walk.run_volume() * static_cast<int64_t>(sizeof(T))) + 1;
  pool.parallel_for(walk.tuples(), grain, [&](int64_t begin, int64_t end, int) {
    if (const auto found = gather_part<T>(from, to, walk, begin, end)) {
      const std::lock_guard lock(mutex);
      outside = found;
    }
  });
  return outside;
}

std::optional<IndexWalk::Outside> gather_all(const TensorArg& data, const TensorArg& output, const IndexWalk& walk,
                                             ThreadPool& pool) {
  return for_size(size_of(output.dtype), [&](auto zero) {
    using T = decltype(zero);
    return gather_as(data.as<T>(), output.as<T>(), walk, pool);
  });
}

// Of indices whose elements are none: they must lie inside all the same.
std::optional<IndexWalk::Outside> GatherKernel::find_outside(const Launch& launch) const {
  const TensorArg& indices = launch.inputs[1];
  if (indices.volume() == 0) return std::nullopt;
  const auto nothing = [](int64_t, int64_t, const int64_t*, int64_t) {};
  if (mode_ != GatherMode::gather) {
    const IndexWalk all = walk(launch);
    return all.for_each_block(0, all.tuples(), nothing);
  }
  TensorArg line;  // the axis alone, so that empty ones beside it do not matter
  line.rank = 1;
  line.dims[0] = launch.inputs[0].dims[axis_];
  line.strides[0] = 1;
  const IndexWalk all = IndexWalk::along_axis(line, indices, indices, 0);
  return all.for_each_block(0, all.tuples(), nothing);
}

Result<> GatherKernel::try_run(const Launch& launch) const {
  const auto outside = launch.outputs[0].volume() == 0
                           ? find_outside(launch)
                           : gather_all(launch.inputs[0], launch.outputs[0], walk(launch), launch.pool);
  return outside ? Result<>(fail_outside(name(), *outside)) : Result<>();
}

}  // namespace

void gather_along_axis(const TensorArg& data, const TensorArg& indices, const TensorArg& output, int axis,
                       ThreadPool& pool) {
  if (output.volume() > 0) (void)gather_all(data, output, IndexWalk::along_axis(data, indices, output, axis), pool);
}

Result<std::unique_ptr<Kernel>> make_gather(const Record& record) {
  const auto params = decode_params<GatherParams>(record.params);
  if (record.program || !params || !is_one_of(params->mode, GatherMode::tuples) || !is_axis(params->axis))
    return refuse_params("gather");
  return std::make_unique<GatherKernel>(params->mode, params->axis);
}

}  // namespace lathe::cpu
