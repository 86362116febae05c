// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/resize/resize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/program_block.h"
#include "kernels/cpu/resize/resize_walk.h"

namespace lathe::cpu {
namespace {

using namespace resizing;

constexpr int64_t kMinTaskLoads = 20000;  // elements read, about 5 us

class ResizeKernel final : public Kernel {
 public:
  ResizeKernel(const ResizeParams& params, const Program* program)
      : params_(params), epilogue_(program ? BlockProgram(*program) : BlockProgram()) {}
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    TapTables tables;
    const size_t own = make_tables(inputs, outputs[0], nullptr, tables) + copy_bytes(inputs[0], outputs[0]);
    const ResizeWalk walk(as_read(inputs[0], outputs[0]), outputs[0], params_.axes, tables);
    return own + thread_bytes(walk, inputs[0].dtype) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  // A row that is blended across the other dimensions, and the row's clamped index table.
  static size_t row_bytes(const ResizeWalk& walk) {
    return round_up(static_cast<size_t>(walk.row.x_extent) * sizeof(float));
  }
  static size_t index_bytes(const ResizeWalk& walk) {
    return round_up(static_cast<size_t>(walk.row.extent * walk.row.taps) * sizeof(int32_t));
  }
  static TensorArg as_read(const TensorArg& x, const TensorArg& y) {
    return lies_otherwise(x, y) ? in_order_of(y, x) : x;
  }
  static size_t copy_bytes(const TensorArg& x, const TensorArg& y) {
    return lies_otherwise(x, y) ? round_up(static_cast<size_t>(x.volume()) * size_of(x.dtype)) : 0;
  }
  size_t epilogue_bytes() const { return round_up(epilogue_.scratch_bytes()); }
  // Of levels: the program's memory and a pixel of floats.
  size_t thread_bytes(const ResizeWalk& walk, DType x) const {
    if (params_.levels.is_given())
      return epilogue_bytes() + round_up(static_cast<size_t>(walk.channels.extent) * sizeof(float));
    return walk.channels.extent == 1 && x == DType::f32 ? row_bytes(walk) + index_bytes(walk) : 0;
  }
  static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }
  size_t make_tables(std::span<const TensorArg> inputs, const TensorArg& y, std::byte* workspace,
                     TapTables& tables) const;
  Result<> check_types(const TensorArg& x, const TensorArg& y, const ResizeWalk& walk) const;
  template <class W>
  void run_rows(const Launch& launch, const ResizeWalk& walk, const TensorArg& input, std::byte* own_memory) const;
  void sum_pixel(const ResizeWalk& walk, const RowTaps<double>& outer, const TensorArg& x, int64_t j,
                 const BlockOutput& y, std::byte* scratch) const;

  const ResizeParams params_;
  const BlockProgram epilogue_;  // of levels
};

// Where the tables are, and the bytes of workspace that those take which are made while running; they are filled when
// there is a workspace.
size_t ResizeKernel::make_tables(std::span<const TensorArg> inputs, const TensorArg& y, std::byte* workspace,
                                 TapTables& tables) const {
  size_t bytes = 0, next = 0;
  for (int d = 0; d < y.rank; ++d) {
    if ((params_.axes >> d & 1) == 0) continue;
    const size_t resized = next++;
    if (!params_.makes_tables) {
      const TensorArg* pair = &inputs[1 + 2 * resized];
      tables[d] = {pair[0].as<int32_t>(), pair[1].data, pair[0].dims[1]};
      continue;
    }
    const int64_t taps = taps_of(params_.rule, 1);
    tables[d].taps = taps;
    const auto count = static_cast<size_t>(y.dims[d] * taps);
    const size_t size = round_up(count * sizeof(int32_t)),
                 weight_size = round_up(count * (params_.levels.is_given() ? sizeof(double) : sizeof(float)));
    if (workspace) {
      auto* index = reinterpret_cast<int32_t*>(workspace + bytes);
      std::byte* weight = workspace + bytes + size;
      const int64_t extent = inputs[0].dims[d];
      const double scale = params_.scales[resized] != 0 ? params_.scales[resized]
                                                        : static_cast<double>(y.dims[d]) / static_cast<double>(extent);
      const SampledAxis axis{extent, y.dims[d], scale};
      if (params_.levels.is_given())
        fill_samples(params_.rule, axis, index, reinterpret_cast<double*>(weight));
      else
        fill_samples(params_.rule, axis, index, reinterpret_cast<float*>(weight));
      tables[d] = {index, weight, taps};
    }
    bytes += size + weight_size;
  }
  return bytes;
}

Result<> check_table(const TensorArg& index, const TensorArg& weight, int64_t extent, DType weights) {
  for (const TensorArg* table : {&index, &weight})
    if (table->rank != 2 || table->dims[0] != extent || table->dims[1] < 1 || table->dims[1] > kMaxBlend ||
        table->dims[1] != index.dims[1] || table->strides[1] != 1 || table->strides[0] != table->dims[1])
      return fail(ErrorCode::shape_mismatch, "resize: a table must be dense, of {} rows and 1 to {} taps", extent,
                  kMaxBlend);
  if (index.dtype != DType::i32 || weight.dtype != weights)
    return fail(ErrorCode::dtype_unsupported, "resize: tables must be i32 and {}, not {} and {}", name_of(weights),
                name_of(index.dtype), name_of(weight.dtype));
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
  if (x.rank != y.rank || params_.axes >> x.rank != 0)
    return fail(ErrorCode::shape_mismatch, "resize: input of rank {}, output of rank {}, axes {:#x}", x.rank, y.rank,
                params_.axes);
  size_t table = 1;
  for (int d = 0; d < x.rank; ++d) {
    if (params_.axes >> d & 1) {
      if ((x.dims[d] < 1 && y.dims[d] > 0) || x.dims[d] > INT32_MAX)
        return fail(ErrorCode::shape_mismatch, "resize: dimension {} is empty or too long", d);
      const DType weights = params_.levels.is_given() ? DType::f64 : DType::f32;
      if (!params_.makes_tables) LATHE_TRY(check_table(inputs[table], inputs[table + 1], y.dims[d], weights));
      table += 2;
    } else if (x.dims[d] != y.dims[d]) {
      return fail(ErrorCode::shape_mismatch, "resize: dimension {} changes, but is not among the axes", d);
    }
  }
  TapTables tables;
  make_tables(inputs, y, nullptr, tables);
  const ResizeWalk walk(as_read(x, y), y, params_.axes, tables);
  if (walk.outer_taps > kMaxBlend)
    return fail(ErrorCode::attribute_invalid, "resize: more than {} taps for one element", kMaxBlend);
  return check_types(x, y, walk);
}

Result<> ResizeKernel::check_types(const TensorArg& x, const TensorArg& y, const ResizeWalk& walk) const {
  const int64_t taps = walk.outer_taps * walk.row.taps;
  const bool has_levels = params_.levels.is_given(), has_bytes = is_byte_integer(x.dtype);
  const bool fits = has_levels ? has_bytes && taps <= kMaxBlend &&
                                     (y.dtype == DType::f32 || (is_byte_integer(y.dtype) && !epilogue_.is_identity()))
                               : y.dtype == x.dtype && (x.dtype == DType::f32 || (has_bytes && taps == 1));
  if (fits) return {};
  return fail(ErrorCode::dtype_unsupported,
              "resize: {} to {}, of {} taps; f32, levels of up to {} taps or bytes of one are supported",
              name_of(x.dtype), name_of(y.dtype), taps, kMaxBlend);
}

// One output pixel: all channels. Taps are blended in portions, so that any number of them fits.
void blend_pixel(const ResizeWalk& walk, const RowTaps<float>& outer, const float* x, int64_t j, float* y) {
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
      weights[count++] = outer.weights[i] * walk.row.weight_at<float>(j, t);
    }
  blend(rows, weights, count, walk.channels.extent, y);
}

// Output elements [begin, end) of one row of single channels.
void resize_row(const ResizeWalk& walk, const RowTaps<float>& outer, const float* x, int64_t begin, int64_t end,
                float* y, float* blended, const int32_t* index) {
  static const auto blend = LATHE_ISA_SELECT(blend_rows);
  static const auto gather = LATHE_ISA_SELECT(gather_row);
  const float* rows[kMaxBlend];
  for (int64_t i = 0; i < outer.count; ++i) rows[i] = x + outer.offsets[i];
  blend(rows, outer.weights, static_cast<int>(outer.count), walk.row.x_extent, blended);
  const int64_t taps = walk.row.taps;
  gather(blended, index + begin * taps, static_cast<const float*>(walk.row.weight) + begin * taps, taps, end - begin,
         y + begin * walk.row.y_stride, walk.row.y_stride);
}

// One output pixel of bytes, each of which is an element of x.
void copy_pixel(const ResizeWalk& walk, const RowTaps<float>& outer, const std::byte* x, int64_t j, std::byte* y) {
  std::memcpy(y, x + outer.offsets[0] + walk.row.offset(j, 0), static_cast<size_t>(walk.channels.extent));
}

// One output pixel of levels.
void ResizeKernel::sum_pixel(const ResizeWalk& walk, const RowTaps<double>& outer, const TensorArg& x, int64_t j,
                             const BlockOutput& y, std::byte* scratch) const {
  static const auto sum_of = LATHE_ISA_SELECT(sum_levels);
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  const std::byte* taps[kMaxBlend];
  double row_weights[kMaxBlend];
  for (int64_t t = 0; t < walk.row.taps; ++t) {
    row_weights[t] = walk.row.weight_at<double>(j, t);
    for (int64_t i = 0; i < outer.count; ++i)
      taps[t * outer.count + i] = x.as<std::byte>() + outer.offsets[i] + walk.row.offset(j, t);
  }
  const LevelSum sum{taps,          outer.weights,        outer.count,    row_weights,
                     walk.row.taps, x.dtype == DType::i8, params_.levels, 1};
  auto* values = reinterpret_cast<float*>(scratch + epilogue_bytes());
  sum_of(sum, walk.channels.extent, values);
  const BlockInput input{values, 0, 1};
  run_block(epilogue_, 1, walk.channels.extent, &input, &y, reinterpret_cast<float*>(scratch));
}

void ResizeKernel::run(const Launch& launch) const {
  const TensorArg& output = launch.outputs[0];
  if (output.volume() == 0) return;
  TapTables tables;
  std::byte* own_memory = launch.workspace + make_tables(launch.inputs, output, launch.workspace, tables);
  TensorArg input = as_read(launch.inputs[0], output);
  if (lies_otherwise(launch.inputs[0], output)) {
    input.data = own_memory;
    copy_tensor(input, launch.inputs[0], launch.pool);
    own_memory += copy_bytes(launch.inputs[0], output);
  }
  const ResizeWalk walk(input, output, params_.axes, tables);
  if (params_.levels.is_given())
    run_rows<double>(launch, walk, input, own_memory);
  else
    run_rows<float>(launch, walk, input, own_memory);
}

template <class W>
void ResizeKernel::run_rows(const Launch& launch, const ResizeWalk& walk, const TensorArg& input,
                            std::byte* own_memory) const {
  const TensorArg& output = launch.outputs[0];
  const float* x = input.as<float>();
  const size_t size = size_of(output.dtype);
  const int64_t work = walk.outer_taps * walk.row.taps * walk.channels.extent;
  const int64_t grain = std::max<int64_t>(1, kMinTaskLoads / work);
  launch.pool.parallel_for(walk.total, grain, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = own_memory + thread_bytes(walk, input.dtype) * static_cast<size_t>(worker);
    auto* blended = reinterpret_cast<float*>(own);
    auto* index = reinterpret_cast<int32_t*>(own + row_bytes(walk));
    const bool by_rows = walk.by_rows() && input.dtype == DType::f32;
    if (by_rows)
      for (int64_t i = 0; i < walk.row.extent * walk.row.taps; ++i)
        index[i] = std::clamp(walk.row.index[i], 0, static_cast<int32_t>(walk.row.x_extent - 1));
    RowTaps<W> taps;
    for (int64_t unit = begin; unit < end;) {
      const int64_t first = unit % walk.row.extent, last = std::min(walk.row.extent, first + end - unit);
      float* target = element_at(output.data, collect(walk, unit / walk.row.extent, taps), size);
      const auto pixel = [&](int64_t j) { return element_at(target, j * walk.row.y_stride, size); };
      if constexpr (std::is_same_v<W, double>)
        for (int64_t j = first; j < last; ++j) sum_pixel(walk, taps, input, j, {pixel(j), 0, 1, output.dtype}, own);
      else if (by_rows)
        resize_row(walk, taps, x, first, last, target, blended, index);
      else if (input.dtype == DType::f32)
        for (int64_t j = first; j < last; ++j) blend_pixel(walk, taps, x, j, pixel(j));
      else
        for (int64_t j = first; j < last; ++j)
          copy_pixel(walk, taps, input.as<std::byte>(), j, reinterpret_cast<std::byte*>(pixel(j)));
      unit += last - first;
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_resize(const Record& record) {
  const auto params = decode_params<ResizeParams>(record.params);
  if (!params || params->axes >> kMaxRank != 0 || !std::isfinite(params->levels.zero) ||
      !std::isfinite(params->levels.scale))
    return refuse_params("resize");
  if (const Program* program = record.program;
      program && (!params->levels.is_given() || program->num_inputs != 1 || program->outputs.size() != 1))
    return refuse_params("resize");
  const SampleRule& rule = params->rule;
  const size_t scales = params->makes_tables ? static_cast<size_t>(std::popcount(params->axes)) : 0;
  if (!is_one_of(rule.mode, SampleRule::Mode::cubic) ||
      !is_one_of(rule.coordinates, SampleRule::Coordinates::tf_half_pixel_for_nn) ||
      !is_one_of(rule.nearest, SampleRule::Nearest::ceil) || rule.antialias || !std::isfinite(rule.cubic_a) ||
      params->scales.size() != scales ||
      !std::all_of(params->scales.begin(), params->scales.end(), [](float scale) { return scale >= 0; }))
    return refuse_params("resize");
  return std::make_unique<ResizeKernel>(*params, record.program);
}

}  // namespace lathe::cpu
