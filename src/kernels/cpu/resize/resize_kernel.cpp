// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/resize/resize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskLoads = 20000;  // elements read, about 5 us
constexpr int kMaxBlend = 256;            // taps of one output element, over all axes, that are blended at once

// One dimension of the output; a dimension that is not resized has one tap of its own index.
struct Axis {
  int64_t extent, y_stride;
  int64_t x_extent, x_stride;
  const int32_t* index = nullptr;
  const float* weight = nullptr;
  int64_t taps = 1;

  int64_t offset(int64_t j, int64_t tap) const {
    const int64_t source = index ? std::clamp<int64_t>(index[j * taps + tap], 0, x_extent - 1) : j;
    return source * x_stride;
  }
  float weight_at(int64_t j, int64_t tap) const { return weight ? weight[j * taps + tap] : 1.0f; }
};

// The tables of the dimensions; those that are not resized have none.
struct Table {
  const int32_t* index = nullptr;
  const float* weight = nullptr;
  int64_t taps = 1;
};
using Tables = Table[kMaxRank];

// The dimensions in the order of the walk: others, the row, and the contiguous channels.
struct Walk {
  Axis axes[kMaxRank + 2];
  int others = 0;
  Axis row{1, 0, 1, 0}, channels{1, 1, 1, 1};
  int64_t total = 1;       // of all but the channels
  int64_t outer_taps = 1;  // product over the others

  Walk(const TensorArg& x, const TensorArg& y, uint32_t resized, const Tables& tables);
  // Whether the row is best interpolated as a whole: first across the other dimensions, then along itself.
  bool by_rows() const { return channels.extent == 1 && row.x_stride == 1 && row.index; }
};

Walk::Walk(const TensorArg& x, const TensorArg& y, uint32_t resized, const Tables& tables) {
  Axis all[kMaxRank];
  int channel_dim = -1, row_dim = -1;
  for (int d = 0; d < y.rank; ++d) {
    all[d] = {y.dims[d], y.strides[d], x.dims[d], x.strides[d]};
    if (resized >> d & 1) {
      all[d].index = tables[d].index;
      all[d].weight = tables[d].weight;
      all[d].taps = tables[d].taps;
    } else if (y.strides[d] == 1 && x.strides[d] == 1 && (channel_dim < 0 || y.dims[d] > y.dims[channel_dim])) {
      channel_dim = d;
    }
  }
  int64_t all_taps = 1;
  for (int d = 0; d < y.rank; ++d) all_taps *= all[d].taps;
  // The row is the innermost dimension, or the one of most taps where there are many: its taps are not listed ahead.
  const auto precedes = [&](int d, int e) {
    return all_taps > kMaxBlend ? all[d].taps > all[e].taps : std::abs(y.strides[d]) <= std::abs(y.strides[e]);
  };
  for (int d = 0; d < y.rank; ++d)
    if (d != channel_dim && (row_dim < 0 || precedes(d, row_dim))) row_dim = d;
  for (int d = 0; d < y.rank; ++d) {
    if (d == channel_dim) {
      channels = all[d];
      continue;
    }
    total *= all[d].extent;
    if (d == row_dim) {
      row = all[d];
    } else {
      outer_taps *= all[d].taps;
      axes[others++] = all[d];
    }
  }
}

// Rows are fast where they are contiguous in x and y alike: an x that lies in another order is copied first.
bool lies_otherwise(const TensorArg& x, const TensorArg& y) {
  for (int d = 0; d < y.rank; ++d)
    if (y.strides[d] == 1 && y.dims[d] > 1) return x.strides[d] != 1 && x.dims[d] > 1;
  return false;
}

// A dense tensor of x's dims in y's order, without memory yet.
TensorArg in_order_of(const TensorArg& y, const TensorArg& x) {
  int order[kMaxRank];
  for (int d = 0; d < x.rank; ++d) {
    int i = d;
    for (; i > 0 && std::abs(y.strides[order[i - 1]]) < std::abs(y.strides[d]); --i) order[i] = order[i - 1];
    order[i] = d;
  }
  TensorArg dense = x;
  int64_t stride = 1;
  for (int i = x.rank; i-- > 0; stride *= x.dims[order[i]]) dense.strides[order[i]] = stride;
  return dense;
}

class ResizeKernel final : public Kernel {
 public:
  explicit ResizeKernel(const ResizeParams& params) : params_(params) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    Tables tables;
    const size_t own = make_tables(inputs, outputs[0], nullptr, tables) + copy_bytes(inputs[0], outputs[0]);
    const Walk walk(as_read(inputs[0], outputs[0]), outputs[0], params_.axes, tables);
    return own + (walk.channels.extent == 1 ? thread_bytes(walk) * static_cast<size_t>(threads) : 0);
  }
  void run(const Launch& launch) const override;

 private:
  // A row that is blended across the other dimensions, and the row's clamped index table.
  static size_t row_bytes(const Walk& walk) { return round_up(static_cast<size_t>(walk.row.x_extent) * sizeof(float)); }
  static size_t index_bytes(const Walk& walk) {
    return round_up(static_cast<size_t>(walk.row.extent * walk.row.taps) * sizeof(int32_t));
  }
  static TensorArg as_read(const TensorArg& x, const TensorArg& y) {
    return lies_otherwise(x, y) ? in_order_of(y, x) : x;
  }
  static size_t copy_bytes(const TensorArg& x, const TensorArg& y) {
    return lies_otherwise(x, y) ? round_up(static_cast<size_t>(x.volume()) * sizeof(float)) : 0;
  }
  static size_t thread_bytes(const Walk& walk) { return row_bytes(walk) + index_bytes(walk); }
  static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }
  size_t make_tables(std::span<const TensorArg> inputs, const TensorArg& y, std::byte* workspace, Tables& tables) const;
  const ResizeParams params_;
};

// Where the tables are, and the bytes of workspace that those take which are made while running; they are filled when
// there is a workspace.
size_t ResizeKernel::make_tables(std::span<const TensorArg> inputs, const TensorArg& y, std::byte* workspace,
                                 Tables& tables) const {
  size_t bytes = 0, next = 0;
  for (int d = 0; d < y.rank; ++d) {
    if ((params_.axes >> d & 1) == 0) continue;
    const size_t resized = next++;
    if (!params_.makes_tables) {
      const TensorArg* pair = &inputs[1 + 2 * resized];
      tables[d] = {pair[0].as<int32_t>(), pair[1].as<float>(), pair[0].dims[1]};
      continue;
    }
    const int64_t taps = taps_of(params_.rule, 1);
    tables[d].taps = taps;
    const size_t size = round_up(static_cast<size_t>(y.dims[d] * taps) * sizeof(float));
    if (workspace) {
      auto* index = reinterpret_cast<int32_t*>(workspace + bytes);
      auto* weight = reinterpret_cast<float*>(workspace + bytes + size);
      const int64_t extent = inputs[0].dims[d];
      const double scale = params_.scales[resized] != 0 ? params_.scales[resized]
                                                        : static_cast<double>(y.dims[d]) / static_cast<double>(extent);
      fill_samples(params_.rule, {extent, y.dims[d], scale}, index, weight);
      tables[d] = {index, weight, taps};
    }
    bytes += 2 * size;
  }
  return bytes;
}

Result<> check_table(const TensorArg& index, const TensorArg& weight, int64_t extent) {
  for (const TensorArg* table : {&index, &weight})
    if (table->rank != 2 || table->dims[0] != extent || table->dims[1] < 1 || table->dims[1] > kMaxBlend ||
        table->dims[1] != index.dims[1] || table->strides[1] != 1 || table->strides[0] != table->dims[1])
      return fail(ErrorCode::shape_mismatch, "resize: a table must be dense, of {} rows and 1 to {} taps", extent,
                  kMaxBlend);
  if (index.dtype != DType::i32 || weight.dtype != DType::f32)
    return fail(ErrorCode::dtype_unsupported, "resize: tables must be i32 and f32, not {} and {}", name_of(index.dtype),
                name_of(weight.dtype));
  return {};
}

Result<> ResizeKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  constexpr size_t kOpInputs = 4;
  const size_t least = params_.makes_tables ? 1 : 1 + 2 * static_cast<size_t>(std::popcount(params_.axes));
  const size_t most = params_.makes_tables ? kOpInputs : least;
  if (inputs.size() < least || inputs.size() > most || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "resize: {} inputs and {} outputs given, {} to {} and 1 expected",
                inputs.size(), outputs.size(), least, most);
  const TensorArg &x = inputs[0], &y = outputs[0];
  if (x.dtype != DType::f32 || y.dtype != DType::f32)
    return fail(ErrorCode::dtype_unsupported, "resize: {} to {}; only f32 is supported", name_of(x.dtype),
                name_of(y.dtype));
  if (x.rank != y.rank || params_.axes >> x.rank != 0)
    return fail(ErrorCode::shape_mismatch, "resize: input of rank {}, output of rank {}, axes {:#x}", x.rank, y.rank,
                params_.axes);
  size_t table = 1;
  for (int d = 0; d < x.rank; ++d) {
    if (params_.axes >> d & 1) {
      if ((x.dims[d] < 1 && y.dims[d] > 0) || x.dims[d] > INT32_MAX)
        return fail(ErrorCode::shape_mismatch, "resize: dimension {} is empty or too long", d);
      if (!params_.makes_tables) LATHE_TRY(check_table(inputs[table], inputs[table + 1], y.dims[d]));
      table += 2;
    } else if (x.dims[d] != y.dims[d]) {
      return fail(ErrorCode::shape_mismatch, "resize: dimension {} changes, but is not among the axes", d);
    }
  }
  Tables tables;
  make_tables(inputs, y, nullptr, tables);
  if (Walk(as_read(x, y), y, params_.axes, tables).outer_taps > kMaxBlend)
    return fail(ErrorCode::attribute_invalid, "resize: more than {} taps for one element", kMaxBlend);
  return {};
}

// The taps of all dimensions but the row, for one row.
struct RowTaps {
  int64_t count = 1;
  int64_t offsets[kMaxBlend] = {0};
  float weights[kMaxBlend] = {1};
};

// Returns the offset of the row in y.
int64_t collect(const Walk& walk, int64_t row, RowTaps& taps) {
  int64_t target = 0;
  taps.count = 1;
  taps.offsets[0] = 0;
  taps.weights[0] = 1;
  for (int d = walk.others - 1; d >= 0; --d) {
    const Axis& axis = walk.axes[d];
    const int64_t j = row % axis.extent;
    row /= axis.extent;
    target += j * axis.y_stride;
    for (int64_t t = axis.taps - 1; t >= 0; --t)  // the first tap last: it overwrites what the others start from
      for (int64_t i = 0; i < taps.count; ++i) {
        taps.offsets[t * taps.count + i] = taps.offsets[i] + axis.offset(j, t);
        taps.weights[t * taps.count + i] = taps.weights[i] * axis.weight_at(j, t);
      }
    taps.count *= axis.taps;
  }
  return target;
}

// One output pixel: all channels. Taps are blended in portions, so that any number of them fits.
void blend_pixel(const Walk& walk, const RowTaps& outer, const float* x, int64_t j, float* y) {
  static const auto blend = LATHE_ISA_SELECT(blend_rows);
  const float* rows[kMaxBlend];
  float weights[kMaxBlend];
  int count = 0;
  for (int64_t t = 0; t < walk.row.taps; ++t)
    for (int64_t i = 0; i < outer.count; ++i) {
      if (count == kMaxBlend) {
        blend(rows, weights, count, walk.channels.extent, y);
        rows[0] = y;
        weights[0] = 1;
        count = 1;
      }
      rows[count] = x + outer.offsets[i] + walk.row.offset(j, t);
      weights[count++] = outer.weights[i] * walk.row.weight_at(j, t);
    }
  blend(rows, weights, count, walk.channels.extent, y);
}

// Output elements [begin, end) of one row of single channels.
void resize_row(const Walk& walk, const RowTaps& outer, const float* x, int64_t begin, int64_t end, float* y,
                float* blended, const int32_t* index) {
  static const auto blend = LATHE_ISA_SELECT(blend_rows);
  static const auto gather = LATHE_ISA_SELECT(gather_row);
  const float* rows[kMaxBlend];
  for (int64_t i = 0; i < outer.count; ++i) rows[i] = x + outer.offsets[i];
  blend(rows, outer.weights, static_cast<int>(outer.count), walk.row.x_extent, blended);
  const int64_t taps = walk.row.taps;
  gather(blended, index + begin * taps, walk.row.weight + begin * taps, taps, end - begin,
         y + begin * walk.row.y_stride, walk.row.y_stride);
}

void ResizeKernel::run(const Launch& launch) const {
  const TensorArg& output = launch.outputs[0];
  if (output.volume() == 0) return;
  Tables tables;
  std::byte* own_memory = launch.workspace + make_tables(launch.inputs, output, launch.workspace, tables);
  TensorArg input = as_read(launch.inputs[0], output);
  if (lies_otherwise(launch.inputs[0], output)) {
    input.data = own_memory;
    copy_tensor(input, launch.inputs[0], launch.pool);
    own_memory += copy_bytes(launch.inputs[0], output);
  }
  const Walk walk(input, output, params_.axes, tables);
  const float* x = input.as<float>();
  float* y = output.as<float>();
  const int64_t work = walk.outer_taps * walk.row.taps * walk.channels.extent;
  const int64_t grain = std::max<int64_t>(1, kMinTaskLoads / work);
  launch.pool.parallel_for(walk.total, grain, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = own_memory + thread_bytes(walk) * static_cast<size_t>(worker);
    auto* blended = reinterpret_cast<float*>(own);
    auto* index = reinterpret_cast<int32_t*>(own + row_bytes(walk));
    if (walk.by_rows())
      for (int64_t i = 0; i < walk.row.extent * walk.row.taps; ++i)
        index[i] = std::clamp(walk.row.index[i], 0, static_cast<int32_t>(walk.row.x_extent - 1));
    RowTaps taps;
    for (int64_t unit = begin; unit < end;) {
      const int64_t first = unit % walk.row.extent, last = std::min(walk.row.extent, first + end - unit);
      float* target = y + collect(walk, unit / walk.row.extent, taps);
      if (walk.by_rows())
        resize_row(walk, taps, x, first, last, target, blended, index);
      else
        for (int64_t j = first; j < last; ++j) blend_pixel(walk, taps, x, j, target + j * walk.row.y_stride);
      unit += last - first;
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_resize(const Record& record) {
  const auto params = decode_params<ResizeParams>(record.params);
  if (record.program || !params || params->axes >> kMaxRank != 0) return refuse_params("resize");
  const SampleRule& rule = params->rule;
  const size_t scales = params->makes_tables ? static_cast<size_t>(std::popcount(params->axes)) : 0;
  if (!is_one_of(rule.mode, SampleRule::Mode::cubic) ||
      !is_one_of(rule.coordinates, SampleRule::Coordinates::tf_half_pixel_for_nn) ||
      !is_one_of(rule.nearest, SampleRule::Nearest::ceil) || rule.antialias || !std::isfinite(rule.cubic_a) ||
      params->scales.size() != scales ||
      !std::all_of(params->scales.begin(), params->scales.end(), [](float scale) { return scale >= 0; }))
    return refuse_params("resize");
  return std::make_unique<ResizeKernel>(*params);
}

}  // namespace lathe::cpu
