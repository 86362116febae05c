// SPDX-License-Identifier: Apache-2.0
// A row of the image, along its last dimension, is the sum of rows of columns, one for each tap whose block covers it.
// A tap adds to every stride-th pixel; therefore the totals of a row lie by phase (see Axis), and what a tap adds is
// contiguous on both sides.
#include "kernels/cpu/col2im/col2im.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/index_walk.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using col2im::Axis;
using col2im::Run;
using elementwise::Lane;

constexpr int kMaxSpatial = kMaxRank - 2;
constexpr int64_t kMinTaskElements = 16 << 10;
constexpr int64_t kRuns = 64;  // that are summed together, at most

Lane lane_of(DType type) {
  if (!is_floating(type)) return type == DType::u64 ? Lane::u64 : Lane::i64;
  return type == DType::f64 ? Lane::f64 : Lane::f32;
}
int64_t lane_bytes(Lane lane) { return lane == Lane::f32 ? 4 : 8; }
bool is_lane(DType type) {
  return type == DType::f32 || type == DType::f64 || type == DType::i64 || type == DType::u64;
}

int64_t floor_div(int64_t value, int64_t unit) { return value >= 0 ? value / unit : -ceil_div(-value, unit); }

// Some rows of the image, by one worker.
class Rows {
 public:
  Rows(const Launch& launch, std::span<const Axis> axes, int64_t first, std::byte* memory)
      : x_(launch.inputs[0]),
        y_(launch.outputs[0]),
        axes_(axes),
        last_(axes.back()),
        lane_(lane_of(x_.dtype)),
        is_direct_(is_lane(x_.dtype) && x_.strides[2] == 1),
        size_(static_cast<int64_t>(size_of(x_.dtype))),
        total_bytes_(std::min(last_.stride, last_.extent) * last_.length * lane_bytes(lane_)),
        totals_(memory),
        block_(memory + total_bytes_) {
    for (const Axis& axis : axes) taps_ *= axis.block;
    for (int d = y_.rank - 2; d >= 0; --d) {
      at_[d] = first % y_.dims[d];
      first /= y_.dims[d];
      offset_ += at_[d] * y_.strides[d];
    }
    if (last_.block <= kRuns) for_each_row_tap([&](const RowTap& tap) { row_taps_[row_tap_count_++] = tap; });
  }

  void sum_next() {
    const int64_t step = y_.strides[y_.rank - 1];
    const bool is_row = is_lane(y_.dtype) && step == 1, in_place = is_row && last_.stride == 1;
    std::byte* row = y_.as<std::byte>() + offset_ * size_;
    std::byte* totals = in_place ? row : totals_;
    Summer summer(*this, totals);
    summer.add_outer(0, 0, 0);
    summer.flush();
    if (is_row && !in_place) {
      static const auto merge = LATHE_ISA_SELECT(merge_phases);
      merge(lane_, totals, last_, row);
    } else if (!is_row) {
      static const auto store = LATHE_ISA_SELECT(store_elements);
      for (int64_t p = 0; p < std::min(last_.stride, last_.extent); ++p)
        store(lane_, totals + p * last_.length * lane_bytes(lane_), ceil_div(last_.extent - p, last_.stride), y_.dtype,
              row + p * step * size_, last_.stride * step);
    }
    advance();
  }

 private:
  // What a tap along the last dimension adds: `count` columns, from `at` on, to totals[to] and those behind it.
  struct RowTap {
    int64_t at, to, count;
  };
  template <class F>
  void for_each_row_tap(F&& f) const {
    int64_t first = floor_div(-last_.pad, last_.stride), phase = -last_.pad - first * last_.stride;
    for (int64_t k = 0; k < last_.block; ++k) {
      const int64_t room = (phase < last_.full ? last_.length : last_.length - 1) - first;
      const int64_t begin = std::max<int64_t>(-first, 0), end = std::min(last_.positions, room);
      if (begin < end)
        f(RowTap{k * x_.strides[1] + begin * x_.strides[2], phase * last_.length + first + begin, end - begin});
      first += last_.jump;
      phase += last_.turn;
      if (phase >= last_.stride) phase -= last_.stride, ++first;
    }
  }

  // Sums runs of columns, kRuns at a time.
  struct Summer {
    Summer(const Rows& rows, std::byte* totals) : rows(rows), totals(totals) {}

    const Rows& rows;
    std::byte* totals;
    bool continued = false;
    int64_t count = 0;
    Run runs[kRuns];

    // Taps of dimension `d` and those behind it, for what the dimensions before have come to.
    void add_outer(size_t d, int64_t tap, int64_t position) {
      const Axis& axis = rows.axes_[d];
      if (d + 1 == rows.axes_.size()) return add_row(tap * axis.block, position * axis.positions);
      const int64_t start = rows.at_[2 + d] + axis.pad;
      int64_t from = floor_div(start, axis.stride), phase = start - from * axis.stride;
      for (int64_t k = 0; k < axis.block && from >= 0; ++k) {
        if (phase == 0 && from < axis.positions)
          add_outer(d + 1, tap * axis.block + k, position * axis.positions + from);
        from -= axis.jump;
        phase -= axis.turn;
        if (phase < 0) phase += axis.stride, --from;
      }
    }

    void add_row(int64_t tap, int64_t position) {
      const TensorArg& x = rows.x_;
      const int64_t base =
          rows.at_[0] * x.strides[0] + (rows.at_[1] * rows.taps_ + tap) * x.strides[1] + position * x.strides[2];
      const auto add_tap = [&](const RowTap& each) { add(base + each.at, each.to, each.count); };
      if (rows.last_.block > kRuns) return rows.for_each_row_tap(add_tap);
      std::for_each_n(rows.row_taps_, rows.row_tap_count_, add_tap);
    }

    void add(int64_t at, int64_t to, int64_t elements) {
      static const auto load = LATHE_ISA_SELECT(load_elements);
      const TensorArg& x = rows.x_;
      const void* from = x.as<std::byte>() + at * rows.size_;
      if (!rows.is_direct_) from = load(x.dtype, from, x.strides[2], elements, rows.lane_, rows.block_);
      runs[count++] = {from, to, elements};
      if (count == kRuns || !rows.is_direct_) flush();
    }

    void flush() {
      static const auto sum = LATHE_ISA_SELECT(sum_runs);
      if (count > 0 || !continued)
        sum(rows.lane_, totals, rows.total_bytes_ / lane_bytes(rows.lane_), runs, count, continued);
      continued = true;
      count = 0;
    }
  };

  void advance() {
    for (int d = y_.rank - 2; d >= 0; --d) {
      offset_ += y_.strides[d];
      if (++at_[d] < y_.dims[d]) return;
      offset_ -= at_[d] * y_.strides[d];
      at_[d] = 0;
    }
  }

  const TensorArg &x_, &y_;
  std::span<const Axis> axes_;
  const Axis& last_;
  Lane lane_;
  bool is_direct_;  // columns are read where they lie
  int64_t size_, total_bytes_, taps_ = 1, offset_ = 0;
  std::byte *totals_, *block_;  // block: room for a row of converted elements
  int64_t at_[kMaxRank] = {};
  int64_t row_tap_count_ = 0;
  RowTap row_taps_[kRuns];  // where the block has no more
};

class Col2ImKernel final : public Kernel {
 public:
  explicit Col2ImKernel(Col2ImParams params) : params_(std::move(params)) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return worker_bytes(inputs[0], outputs[0]) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override { (void)try_run(launch); }
  Result<> try_run(const Launch& launch) const override;

 private:
  // The totals of a row, and a row of columns: positions are pixels of one phase, of the image with its padding.
  size_t worker_bytes(const TensorArg& x, const TensorArg& y) const {
    const int64_t stride = params_.stride.back(), extent = y.dims[y.rank - 1];
    const int64_t padded = extent + params_.pads_begin.back() + params_.pads_end.back();
    const int64_t totals = std::min(stride, extent) * ceil_div(extent, stride);
    const int64_t positions = std::min(ceil_div(std::max<int64_t>(padded, 0), stride), x.dims[2]);
    return static_cast<size_t>(round_up((totals + positions) * 8, 64));
  }
  Axis axis(const TensorArg& y, const TensorArg& block, size_t i) const;

  const Col2ImParams params_;
};

Result<> Col2ImKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || inputs.size() > 3 || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "col2im: {} inputs and {} outputs given, 2 or 3 and 1 expected",
                inputs.size(), outputs.size());
  const TensorArg &x = inputs[0], &block = inputs.back(), &y = outputs[0];
  if (is_storage_only(x.dtype) || x.dtype != y.dtype || !is_integer(block.dtype))
    return fail(ErrorCode::type_mismatch, "col2im: {} from {} by a block of {}", name_of(y.dtype), name_of(x.dtype),
                name_of(block.dtype));
  const auto spatial = static_cast<int64_t>(params_.stride.size());
  if (x.rank != 3 || y.rank != 2 + spatial || block.rank != 1 || block.dims[0] != spatial || x.dims[0] != y.dims[0])
    return fail(ErrorCode::shape_mismatch, "col2im: columns, block and image do not fit");
  return {};
}

Axis Col2ImKernel::axis(const TensorArg& y, const TensorArg& block, size_t i) const {
  Axis axis;
  axis.extent = y.dims[2 + i];
  axis.block = integer_at(block, static_cast<int64_t>(i) * block.strides[0]);
  axis.stride = params_.stride[i];
  axis.dilation = params_.dilation[i];
  axis.pad = params_.pads_begin[i];
  axis.length = ceil_div(axis.extent, axis.stride);
  axis.full = axis.extent - (axis.length - 1) * axis.stride;
  axis.jump = axis.dilation / axis.stride;
  axis.turn = axis.dilation % axis.stride;
  // A block of more than 2^31 fits into no image, and its reach may overflow.
  if (axis.block < 1 || axis.block > INT32_MAX) return axis;
  const int64_t room = axis.extent + axis.pad + params_.pads_end[i] - (axis.block - 1) * axis.dilation - 1;
  axis.positions = room < 0 ? 0 : room / axis.stride + 1;
  return axis;
}

Result<> Col2ImKernel::try_run(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], &y = launch.outputs[0];
  Axis axes[kMaxSpatial];
  const size_t spatial = params_.stride.size();
  int64_t taps = 1, positions = 1;
  bool fits = true;
  for (size_t i = 0; fits && i < spatial; ++i) {
    axes[i] = axis(y, launch.inputs.back(), i);
    fits = axes[i].block >= 1 && axes[i].block <= INT32_MAX && !__builtin_mul_overflow(taps, axes[i].block, &taps) &&
           !__builtin_mul_overflow(positions, axes[i].positions, &positions);
  }
  int64_t channels = 0;
  if (!fits || __builtin_mul_overflow(taps, y.dims[1], &channels) || channels != x.dims[1] || positions != x.dims[2])
    return fail(ErrorCode::shape_mismatch,
                "col2im: {} x {} columns do not fit the taps and positions of the block in the image", x.dims[1],
                x.dims[2]);
  if (y.volume() == 0) return {};
  const int64_t length = y.dims[y.rank - 1];
  const int64_t additions = x.volume() / (y.volume() / length) + length;  // of a row, about
  launch.pool.parallel_for(y.volume() / length, kMinTaskElements / additions + 1,
                           [&](int64_t begin, int64_t end, int worker) {
                             std::byte* own = launch.workspace + worker_bytes(x, y) * static_cast<size_t>(worker);
                             Rows rows(launch, {axes, spatial}, begin, own);
                             for (int64_t i = begin; i < end; ++i) rows.sum_next();
                           });
  return {};
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_col2im(const Record& record) {
  auto params = decode_params<Col2ImParams>(record.params);
  if (record.program || !params) return refuse_params("col2im");
  const size_t spatial = params->stride.size();
  const auto all = [&](const std::vector<int64_t>& list, int64_t least) {
    return list.size() == spatial && std::all_of(list.begin(), list.end(), [&](int64_t value) {
             return value >= least && value <= Col2ImParams::kMost;
           });
  };
  if (spatial < 1 || spatial > kMaxSpatial || !all(params->stride, 1) || !all(params->dilation, 1) ||
      !all(params->pads_begin, -Col2ImParams::kMost) || !all(params->pads_end, -Col2ImParams::kMost))
    return refuse_params("col2im");
  return std::make_unique<Col2ImKernel>(*std::move(params));
}

}  // namespace lathe::cpu
