// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/movement/movement.h"

#include <algorithm>
#include <cstring>

#include "base/for_size.h"
#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskBytes = 48 << 10;  // about 5 us of copying
constexpr int64_t kNowhere = INT64_MIN;

// An integer of a list of any strides.
int64_t entry(const TensorArg& list, int64_t i) { return integer_at(list, i * list.strides[0]); }

// How one axis of the result follows from x's.
struct AxisRule {
  Movement mode = Movement::repeat;
  int64_t extent = 1;          // of x
  int64_t begin = 0, end = 0;  // slice: the first element and the step; pads

  // Where x has the element; kNowhere = it has none. What slices find may lie outside x.
  int64_t source(int64_t j) const;
};

AxisRule slice_rule(int64_t extent, int64_t start, int64_t step) {
  if (start < 0) start = start < -extent ? 0 : start + extent;
  const int64_t last = std::max<int64_t>(extent - 1, 0);
  return {Movement::slice, extent, step > 0 ? std::min(start, extent) : std::clamp<int64_t>(start, 0, last), step};
}

int64_t AxisRule::source(int64_t j) const {
  if (mode == Movement::repeat) return extent == 1 ? 0 : j % std::max<int64_t>(extent, 1);
  if (mode == Movement::slice) {
    int64_t i = 0;
    return __builtin_mul_overflow(j, end, &i) || __builtin_add_overflow(i, begin, &i) ? -1 : i;
  }
  // Negative pads crop; what remains is then extended.
  const int64_t low = std::max<int64_t>(-begin, 0), kept = extent - low - std::max<int64_t>(-end, 0);
  int64_t i = j - std::max<int64_t>(begin, 0);
  if (i >= 0 && i < kept) return i + low;
  if (mode == Movement::pad_constant) return kNowhere;
  if (mode == Movement::pad_edge) return std::clamp<int64_t>(i, 0, kept - 1) + low;
  const int64_t period = mode == Movement::pad_wrap ? kept : std::max<int64_t>(2 * (kept - 1), 1);
  i = (i % period + period) % period;
  return (i >= kept ? period - i : i) + low;
}

// The result's axes, from that with the longest stride on; `offsets` are elements of x.
struct Axes {
  int rank = 0;
  int64_t dims[kMaxRank] = {}, strides[kMaxRank] = {};
  int64_t* offsets[kMaxRank] = {};
  int64_t block = 1;  // elements that lie together in both, behind the last axis

  int64_t outer() const {
    int64_t product = 1;
    for (int d = 0; d + 1 < rank; ++d) product *= dims[d];
    return product;
  }
};

class MovementKernel final : public Kernel {
 public:
  explicit MovementKernel(Movement mode) : mode_(mode) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    int64_t entries = 0;
    for (int d = 0; d < outputs[0].rank; ++d) entries += outputs[0].dims[d];
    return static_cast<size_t>(entries) * sizeof(int64_t);
  }
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  bool pads() const { return mode_ >= Movement::pad_constant && mode_ <= Movement::pad_wrap; }
  std::string_view name() const { return pads() ? "pad" : mode_ == Movement::slice ? "slice" : "tile"; }
  Result<> find_rules(const Launch& launch, AxisRule* rules) const;
  Result<> fill_offsets(const Launch& launch, const AxisRule* rules, int64_t** offsets) const;

  const Movement mode_;
};

Result<> MovementKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const size_t most = mode_ == Movement::slice ? 5 : pads() ? 4 : 2;
  if (inputs.empty() || inputs.size() > most || (mode_ == Movement::slice && inputs.size() < 3) ||
      (pads() && inputs.size() < 2) || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "movement: {} inputs and {} outputs do not fit mode {}", inputs.size(),
                outputs.size(), static_cast<int64_t>(mode_));
  const TensorArg &x = inputs[0], &y = outputs[0];
  if (x.dtype != y.dtype)
    return fail(ErrorCode::type_mismatch, "{}: {} of {}", name(), name_of(y.dtype), name_of(x.dtype));
  if (mode_ == Movement::repeat ? x.rank > y.rank : x.rank != y.rank)
    return fail(ErrorCode::shape_mismatch, "{}: a result of rank {} from one of rank {}", name(), y.rank, x.rank);
  if (mode_ == Movement::repeat) return {};
  const bool is_slice = mode_ == Movement::slice;
  const int64_t count = inputs[1].rank == 1 ? inputs[1].dims[0] / (is_slice ? 1 : 2) : -1;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (pads() && i == 2) {
      if (inputs[i].volume() != 1) return fail(ErrorCode::shape_mismatch, "pad: the value must be one element");
      continue;
    }
    const bool omitted = i > 2 && inputs[i].rank == 0;
    if (!omitted && (!is_integer(inputs[i].dtype) || inputs[i].rank != 1 ||
                     inputs[i].dims[0] != (i == 1 && !is_slice ? 2 * count : count)))
      return fail(ErrorCode::shape_mismatch, "{}: the lists do not fit", name());
  }
  return {};
}

// What the op's lists say of each axis.
Result<> MovementKernel::find_rules(const Launch& launch, AxisRule* rules) const {
  const TensorArg &x = launch.inputs[0], &y = launch.outputs[0];
  const int lead = y.rank - x.rank;
  for (int d = 0; d < x.rank; ++d) {
    rules[lead + d].extent = x.dims[d];
    if (mode_ == Movement::slice) rules[d] = slice_rule(x.dims[d], 0, 1);
    if (pads()) rules[d] = {mode_, x.dims[d]};
  }
  if (mode_ == Movement::repeat) return {};
  const bool is_slice = mode_ == Movement::slice;
  const TensorArg& first = launch.inputs[1];
  const auto given = [&](size_t i) {
    return i < launch.inputs.size() && launch.inputs[i].data && launch.inputs[i].rank == 1 ? &launch.inputs[i]
                                                                                           : nullptr;
  };
  const TensorArg *axes = given(3), *steps = is_slice ? given(4) : nullptr;
  const int64_t count = is_slice ? first.dims[0] : first.dims[0] / 2;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t named = axes ? entry(*axes, i) : i, axis = named < 0 ? named + x.rank : named;
    if (axis < 0 || axis >= x.rank)
      return fail(ErrorCode::execution_failed, "{}: axis {} is outside [-{}, {})", name(), named, x.rank, x.rank);
    const int64_t extent = x.dims[axis];
    if (is_slice) {
      rules[axis] = slice_rule(extent, entry(first, i), steps ? entry(*steps, i) : 1);
      continue;
    }
    AxisRule rule{mode_, extent, entry(first, i), entry(first, i + count)};
    const int64_t kept = extent - std::max<int64_t>(-rule.begin, 0) - std::max<int64_t>(-rule.end, 0);
    if (mode_ != Movement::pad_constant && kept <= 0 && y.dims[axis] > 0)
      return fail(ErrorCode::execution_failed, "pad: an axis of extent {} has nothing to repeat after cropping",
                  extent);
    rules[axis] = rule;
  }
  return {};
}

Result<> MovementKernel::fill_offsets(const Launch& launch, const AxisRule* rules, int64_t** offsets) const {
  const TensorArg &x = launch.inputs[0], &y = launch.outputs[0];
  auto* next = reinterpret_cast<int64_t*>(launch.workspace);
  const int lead = y.rank - x.rank;
  for (int d = 0; d < y.rank; ++d) {
    offsets[d] = next;
    next += y.dims[d];
    const int64_t stride = d < lead ? 0 : x.strides[d - lead];
    for (int64_t j = 0; j < y.dims[d]; ++j) {
      const int64_t i = rules[d].source(j);
      if (i != kNowhere && (i < 0 || i >= rules[d].extent))
        return fail(ErrorCode::execution_failed, "{}: element {} of axis {} would be element {} of {}", name(), j, d, i,
                    rules[d].extent);
      offsets[d][j] = i == kNowhere ? kNowhere : i * stride;
    }
  }
  return {};
}

// Axes in the order in which the result lies in memory; those at the end that x has in the same order are one block.
Axes arrange(const TensorArg& y, int64_t* const* offsets) {
  int order[kMaxRank];
  for (int d = 0; d < y.rank; ++d) order[d] = d;
  std::stable_sort(order, order + y.rank, [&](int a, int b) { return y.strides[a] > y.strides[b]; });
  Axes axes;
  for (int k = 0; k < y.rank; ++k) {
    if (y.dims[order[k]] == 1 && offsets[order[k]][0] == 0) continue;
    axes.dims[axes.rank] = y.dims[order[k]];
    axes.strides[axes.rank] = y.strides[order[k]];
    axes.offsets[axes.rank++] = offsets[order[k]];
  }
  const auto is_whole = [&](int d) {
    if (axes.strides[d] != axes.block) return false;
    for (int64_t j = 0; j < axes.dims[d]; ++j)
      if (axes.offsets[d][j] != j * axes.block) return false;
    return true;
  };
  while (axes.rank > 0 && is_whole(axes.rank - 1)) axes.block *= axes.dims[--axes.rank];
  if (axes.rank == 0) {  // one turn
    static int64_t start = 0;
    axes.rank = 1;
    axes.dims[0] = 1;
    axes.offsets[0] = &start;
  }
  return axes;
}

template <class T>
class Mover {
 public:
  Mover(const Axes& axes, const T* from, T* to, T value) : axes_(axes), from_(from), to_(to), value_(value) {
    const int inner = axes.rank - 1;
    const int64_t* offsets = axes.offsets[inner];
    for (int64_t j = 1; j < axes.dims[inner]; ++j) runs_ += !continues(offsets[j - 1], offsets[j]);
    in_runs_ = axes.block > 1 || (axes.strides[inner] == 1 && runs_ * 4 <= axes.dims[inner]);
    for (int64_t j = 0; j < axes.dims[inner]; ++j) has_gaps_ |= offsets[j] == kNowhere;
  }

  // The last axis, for one position of the others.
  void row(int64_t position) const {
    const int inner = axes_.rank - 1;
    int64_t source = 0, target = 0;
    for (int d = inner - 1; d >= 0; --d) {
      const int64_t j = position % axes_.dims[d];
      position /= axes_.dims[d];
      target += j * axes_.strides[d];
      source = source == kNowhere || axes_.offsets[d][j] == kNowhere ? kNowhere : source + axes_.offsets[d][j];
    }
    const int64_t count = axes_.dims[inner], step = axes_.strides[inner];
    const int64_t* offsets = axes_.offsets[inner];
    T* to = to_ + target;
    if (source == kNowhere) {
      for (int64_t j = 0; j < count; ++j) std::fill_n(to + j * step, axes_.block, value_);
    } else if (in_runs_) {
      move_runs(from_ + source, to);
    } else if (has_gaps_) {
      for (int64_t j = 0; j < count; ++j) to[j * step] = offsets[j] == kNowhere ? value_ : from_[source + offsets[j]];
    } else {
      for (int64_t j = 0; j < count; ++j) to[j * step] = from_[source + offsets[j]];
    }
  }

 private:
  bool continues(int64_t before, int64_t next) const {
    if (axes_.strides[axes_.rank - 1] != axes_.block) return false;
    return before == kNowhere || next == kNowhere ? before == next : next == before + axes_.block;
  }
  void move_runs(const T* from, T* to) const {
    const int inner = axes_.rank - 1;
    const int64_t* offsets = axes_.offsets[inner];
    for (int64_t j = 0; j < axes_.dims[inner];) {
      int64_t last = j + 1;
      while (last < axes_.dims[inner] && continues(offsets[last - 1], offsets[last])) ++last;
      const int64_t length = (last - j) * axes_.block;
      T* target = to + j * axes_.strides[inner];
      if (offsets[j] == kNowhere)
        std::fill_n(target, length, value_);
      else
        std::memcpy(target, from + offsets[j], static_cast<size_t>(length) * sizeof(T));
      j = last;
    }
  }

  const Axes& axes_;
  const T* from_;
  T* to_;
  T value_;
  int64_t runs_ = 1;
  bool in_runs_ = false, has_gaps_ = false;
};

template <class T>
void move(const Launch& launch, const Axes& axes, const void* value) {
  T filling{};
  if (value) std::memcpy(&filling, value, sizeof(T));
  const Mover<T> mover(axes, launch.inputs[0].as<T>(), launch.outputs[0].as<T>(), filling);
  const int64_t row_bytes = axes.dims[axes.rank - 1] * axes.block * static_cast<int64_t>(sizeof(T));
  launch.pool.parallel_for(axes.outer(), kMinTaskBytes / row_bytes + 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) mover.row(i);
  });
}

Result<> MovementKernel::try_run(const Launch& launch) const {
  const TensorArg& y = launch.outputs[0];
  if (y.volume() == 0) return {};
  AxisRule rules[kMaxRank];
  int64_t* offsets[kMaxRank] = {};
  LATHE_TRY(find_rules(launch, rules));
  LATHE_TRY(fill_offsets(launch, rules, offsets));
  const void* value = pads() && launch.inputs.size() > 2 ? launch.inputs[2].data : nullptr;
  const Axes axes = arrange(y, offsets);
  for_size(size_of(y.dtype), [&](auto zero) { move<decltype(zero)>(launch, axes, value); });
  return {};
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_movement(const Record& record) {
  const auto params = decode_params<MovementParams>(record.params);
  if (record.program || !params || !is_one_of(params->mode, Movement::repeat)) return refuse_params("movement");
  return std::make_unique<MovementKernel>(params->mode);
}

}  // namespace lathe::cpu
