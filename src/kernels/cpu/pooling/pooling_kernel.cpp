// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/divide.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/pooling/pooling.h"
#include "kernels/cpu/program_block.h"
#include "kernels/cpu/transpose.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskLoads = 20000;  // elements read, about 5 us
constexpr int64_t kChannelPiece = 64;
constexpr int64_t kRowBlock = 8;  // rows of a channel's plane that are pooled one after the other, for caches' sake
constexpr int64_t kMaxParam = int64_t{1} << 31;

// The taps of one axis for one output coordinate that lie inside the input, and how many the divisor counts.
struct Taps {
  int64_t first, count, padded_count;
};

Taps taps_of(const PoolingAxis& axis, int64_t extent, int64_t output) {
  const int64_t start = output * axis.stride - axis.pad_begin;
  const auto below = [&](int64_t limit) {  // taps whose position is less than limit
    return limit <= start ? 0 : std::min(axis.kernel, (limit - start + axis.dilation - 1) / axis.dilation);
  };
  const int64_t skipped = below(0);
  return {start + skipped * axis.dilation, std::max<int64_t>(0, below(extent) - skipped), below(extent + axis.pad_end)};
}

// Tensors as N, C, three spatial dimensions.
struct Image {
  float* data;
  DType dtype;
  size_t size;  // of an element
  int64_t dims[5], strides[5];
  explicit Image(const TensorArg& tensor) : data(tensor.as<float>()), dtype(tensor.dtype), size(size_of(tensor.dtype)) {
    const int missing = 5 - tensor.rank;
    for (int d = 0; d < 5; ++d) {
      const int own = d < 2 ? d : d - missing;
      dims[d] = d >= 2 && own < 2 ? 1 : tensor.dims[own];
      strides[d] = d >= 2 && own < 2 ? 0 : tensor.strides[own];
    }
  }
};

// What a launch works on. The axes are resolved: they have their window's extent and their padding.
struct Work {
  Image in, out;
  PoolingAxis axes[3];

  // A row of the input with its padding, as far as windows or pixels reach.
  int64_t padded_row() const {
    const PoolingAxis& axis = axes[2];
    return std::max((out.dims[4] - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1,
                    axis.pad_begin + in.dims[4]);
  }
  // Whether rows of the input are contiguous, not its channels, and are worth being padded.
  bool by_rows() const {
    return in.size == sizeof(float) && in.strides[1] != 1 && in.strides[4] == 1 &&
           (out.strides[1] == 1 || out.strides[4] == 1) && padded_row() <= 4 * in.dims[4] + 64;
  }
  // Where the window of an output coordinate begins and how many pixels it has, along an axis; moves `data` there.
  Taps move_to(int d, int64_t output, const float*& data) const {
    const Taps taps = taps_of(axes[d], in.dims[d + 2], output);
    data = element_at(data, taps.first * in.strides[d + 2] * (taps.count > 0), in.size);
    return taps;
  }
};

// The memory of one thread that goes by rows, in floats.
struct RowScratch {
  int64_t row, scales, finished;  // scales: of each row of a block
  explicit RowScratch(const Work& work)
      : row(rounded(work.padded_row() + kPoolRowSlack)),
        scales(rounded(work.out.dims[4] * kRowBlock)),
        finished(rounded(work.out.dims[4] * kRowBlock * std::min(work.in.dims[1], kChannelPiece))) {}
  static int64_t rounded(int64_t floats) { return round_up(floats, 16); }
  size_t bytes() const { return static_cast<size_t>(row + scales + finished) * sizeof(float); }
};

class PoolingKernel final : public Kernel {
 public:
  PoolingKernel(const PoolingParams& params, const Program* program)
      : maximum_(params.maximum),
        spatial_(static_cast<int>(params.axes.size())),
        count_include_pad_(params.count_include_pad),
        padding_rule_(params.padding_rule),
        levels_(params.levels),
        epilogue_(program ? BlockProgram(*program) : BlockProgram()) {
    std::copy(params.axes.begin(), params.axes.end(), axes_ + 3 - spatial_);
  }
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return scratch_bytes(work_of(inputs[0], outputs[0])) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  // Of one thread: the epilogue's memory, then that of rows. Averages of levels are stored by an epilogue that does
  // nothing.
  size_t epilogue_bytes() const {
    return epilogue_.is_identity() && !levels_.is_given() ? 0 : round_up(epilogue_.scratch_bytes(), size_t{64});
  }
  size_t scratch_bytes(const Work& work) const {
    return epilogue_bytes() + (levels_.is_given() ? level_bytes(work) : work.by_rows() ? RowScratch(work).bytes() : 0);
  }
  // The taps of a window of levels, and the averages of a pixel.
  static int64_t most_taps(const Work& work) {
    int64_t taps = 1;
    for (int d = 0; d < 3; ++d) taps *= std::min(work.axes[d].kernel, work.in.dims[d + 2]);
    return taps;
  }
  static size_t level_bytes(const Work& work) {
    return static_cast<size_t>(round_up(most_taps(work) * int64_t{sizeof(std::byte*)}, 64) +
                               round_up(work.out.dims[1] * int64_t{sizeof(float)}, 64));
  }
  Work work_of(const TensorArg& input, const TensorArg& output) const;
  float scale_of(double count) const { return count > 0 ? static_cast<float>(1 / count) : 0.0f; }
  double divisor(const Taps& taps) const {
    return static_cast<double>(count_include_pad_ ? taps.padded_count : taps.count);
  }
  bool takes_bytes() const { return maximum_ && epilogue_.is_identity(); }
  Result<> check_types(std::span<const TensorArg> inputs, const TensorArg& out) const;
  void pool(DType dtype, const PoolWindow& window, int64_t channels, float scale, float* target) const;
  void pool_pixel(const Work& work, const int64_t (&at)[4], int64_t first, int64_t last) const;
  void pool_levels(const Launch& launch, const Work& work, const int64_t (&at)[4], int64_t first, int64_t last,
                   std::byte* scratch) const;
  void pool_rows(const Work& work, const int64_t (&at)[4], int64_t count, int64_t first, int64_t last,
                 float* scratch) const;
  void run_epilogue(const Launch& launch, const Image& out, const int64_t (&at)[4], int64_t pixels, int64_t first,
                    int64_t last, float* scratch, const float* averages = nullptr) const;

  const bool maximum_;
  const int spatial_;
  const bool count_include_pad_;
  const PaddingRule padding_rule_;
  const ByteScale levels_;
  PoolingAxis axes_[3];
  const BlockProgram epilogue_;
};

Result<> PoolingKernel::check_types(std::span<const TensorArg> inputs, const TensorArg& out) const {
  const auto refuse = [](DType dtype) {
    return fail(
        ErrorCode::dtype_unsupported,
        "pooling: an operand is {}; all are f32, or u8 or i8 of maxima without an epilogue, or levels of averages",
        name_of(dtype));
  };
  const DType in = inputs[0].dtype;
  const bool has_bytes = is_byte_integer(in), gives_levels = is_byte_integer(out.dtype) && !epilogue_.is_identity();
  if (levels_.is_given() ? !has_bytes : in != DType::f32 && !(has_bytes && takes_bytes())) return refuse(in);
  if (levels_.is_given() ? out.dtype != DType::f32 && !gives_levels : out.dtype != in) return refuse(out.dtype);
  for (const TensorArg& operand : inputs.subspan(1))
    if (operand.dtype != DType::f32) return refuse(operand.dtype);
  return {};
}

Result<> PoolingKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != static_cast<size_t>(epilogue_.num_inputs()) || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "pooling: {} inputs and {} outputs given, {} and 1 expected",
                inputs.size(), outputs.size(), epilogue_.num_inputs());
  LATHE_TRY(check_types(inputs, outputs[0]));
  const TensorArg &in = inputs[0], &out = outputs[0];
  if (levels_.is_given() && in.dims[1] > 1 && in.strides[1] != 1)
    return fail(ErrorCode::shape_mismatch, "pooling: channels of levels are not contiguous");
  if (in.rank != spatial_ + 2 || out.rank != in.rank || in.dims[0] != out.dims[0] || in.dims[1] != out.dims[1])
    return fail(ErrorCode::shape_mismatch, "pooling: input and output must be N C and {} spatial dimensions", spatial_);
  for (const TensorArg& operand : inputs.subspan(1))
    if (!broadcasts_to(operand, out))
      return fail(ErrorCode::shape_mismatch, "pooling: an operand of the epilogue does not broadcast to the output");
  return {};
}

Work PoolingKernel::work_of(const TensorArg& input, const TensorArg& output) const {
  Work work{Image(input), Image(output), {}};
  for (int d = 0; d < 3; ++d) {
    PoolingAxis& axis = work.axes[d];
    axis = axes_[d];
    if (axis.kernel == 0) axis.kernel = work.in.dims[d + 2];
    const SlidingWindow window{work.in.dims[d + 2], work.out.dims[d + 2], axis.kernel, axis.stride, axis.dilation};
    const Padding padding = window.padding(padding_rule_, {axis.pad_begin, axis.pad_end});
    axis.pad_begin = padding.begin;
    axis.pad_end = padding.end;
  }
  return work;
}

void PoolingKernel::pool(DType dtype, const PoolWindow& window, int64_t channels, float scale, float* target) const {
  static const auto maximum = LATHE_ISA_SELECT(pool_maximum);
  static const auto average = LATHE_ISA_SELECT(pool_average);
  static const auto maximum_of_bytes = LATHE_ISA_SELECT(pool_maximum_of_bytes);
  if (dtype != DType::f32)
    return maximum_of_bytes(window, channels, dtype == DType::i8, reinterpret_cast<std::byte*>(target));
  maximum_ ? maximum(window, channels, target) : average(window, channels, scale, target);
}

// Channels [first, last) of the output pixel at = {n, three spatial coordinates}.
void PoolingKernel::pool_pixel(const Work& work, const int64_t (&at)[4], int64_t first, int64_t last) const {
  const Image &in = work.in, &out = work.out;
  PoolWindow window{element_at(in.data, at[0] * in.strides[0] + first * in.strides[1], in.size), {}, {}};
  float* target = element_at(out.data, at[0] * out.strides[0] + first * out.strides[1], out.size);
  double count = 1;  // of pixels; a hostile kernel size cannot overflow it
  for (int d = 0; d < 3; ++d) {
    const Taps taps = work.move_to(d, at[d + 1], window.data);
    window.count[d] = taps.count;
    window.stride[d] = work.axes[d].dilation * in.strides[d + 2];
    target = element_at(target, at[d + 1] * out.strides[d + 2], out.size);
    count *= divisor(taps);
  }
  const bool contiguous = in.strides[1] == 1 && out.strides[1] == 1;
  const int64_t step = contiguous ? last - first : 1;
  for (int64_t c = first; c < last; c += step) {
    pool(in.dtype, window, step, scale_of(count), target);
    window.data = element_at(window.data, in.strides[1], in.size);
    target = element_at(target, out.strides[1], out.size);
  }
}

// The same of levels, with what the epilogue makes of their averages.
void PoolingKernel::pool_levels(const Launch& launch, const Work& work, const int64_t (&at)[4], int64_t first,
                                int64_t last, std::byte* scratch) const {
  static const auto sum_of = LATHE_ISA_SELECT(sum_levels);
  auto** taps = reinterpret_cast<const std::byte**>(scratch + epilogue_bytes());
  auto* averages = reinterpret_cast<float*>(scratch + epilogue_bytes() +
                                            round_up(most_taps(work) * int64_t{sizeof(std::byte*)}, 64));
  const Image& in = work.in;
  const float* data = element_at(in.data, at[0] * in.strides[0] + first, in.size);
  Taps window[3];
  double count = 1;
  for (int d = 0; d < 3; ++d) {
    window[d] = work.move_to(d, at[d + 1], data);
    count *= divisor(window[d]);
  }
  const auto step = [&](int d) { return work.axes[d].dilation * in.strides[d + 2]; };
  LevelSum sum{taps, nullptr, 0, nullptr, 1, in.dtype == DType::i8, levels_, std::max(count, 1.0)};
  for (int64_t i = 0; i < window[0].count; ++i)
    for (int64_t j = 0; j < window[1].count; ++j)
      for (int64_t k = 0; k < window[2].count; ++k)
        taps[sum.count++] = reinterpret_cast<const std::byte*>(data) + i * step(0) + j * step(1) + k * step(2);
  sum_of(sum, last - first, averages);
  run_epilogue(launch, work.out, at, 1, first, last, reinterpret_cast<float*>(scratch), averages);
}

// Channels [first, last) of `count` output rows from {n, z, y} on. Of each channel, the rows that a row of windows sees
// become one, with its padding, and the windows go along it.
void PoolingKernel::pool_rows(const Work& work, const int64_t (&at)[4], int64_t count, int64_t first, int64_t last,
                              float* scratch) const {
  static const auto transpose = LATHE_ISA_SELECT(transpose_floats);
  static const auto along = LATHE_ISA_SELECT(pool_along);
  const Image &in = work.in, &out = work.out;
  const PoolingAxis& axis = work.axes[2];
  const int64_t width = in.dims[4], outputs = out.dims[4];
  const RowScratch sizes(work);
  float *scales = scratch + sizes.row, *finished = scales + sizes.scales;
  std::fill_n(scratch, sizes.row, maximum_ ? -std::numeric_limits<float>::infinity() : 0.0f);
  const PoolRow row{scratch, axis.kernel, axis.dilation, axis.stride, outputs};
  PoolWindow windows[kRowBlock];  // of the first channel
  for (int64_t r = 0; r < count; ++r) {
    windows[r] = {in.data + at[0] * in.strides[0] + first * in.strides[1], {1, 1, 1}, {}};
    double counts = 1;
    for (int d = 0; d < 2; ++d) {
      const Taps taps = work.move_to(d, at[d + 1] + (d == 1 ? r : 0), windows[r].data);
      windows[r].count[d + 1] = taps.count;
      windows[r].stride[d + 1] = work.axes[d].dilation * in.strides[d + 2];
      counts *= divisor(taps);
    }
    for (int64_t x = 0; !maximum_ && x < outputs; ++x)
      scales[r * outputs + x] = scale_of(counts * divisor(taps_of(axis, width, x)));
  }
  const bool transposed = out.strides[4] != 1;
  float* target = out.data + at[0] * out.strides[0] + at[1] * out.strides[2] + at[2] * out.strides[3];
  for (int64_t c = first; c < last; c += kChannelPiece) {
    const int64_t channels = std::min(kChannelPiece, last - c);
    for (int64_t i = c; i < c + channels; ++i)
      for (int64_t r = 0; r < count; ++r) {
        pool(DType::f32, windows[r], width, 1, scratch + axis.pad_begin);
        windows[r].data += in.strides[1];
        along(
            row, maximum_ ? nullptr : scales + r * outputs,
            transposed ? finished + ((i - c) * count + r) * outputs : target + i * out.strides[1] + r * out.strides[3]);
      }
    for (int64_t r = 0; transposed && r < count; ++r)
      transpose(target + c + r * out.strides[3], out.strides[4], finished + r * outputs, count * outputs, outputs,
                channels);
  }
}

// Pixels of one row of the output: in place, or from the averages of one pixel.
void PoolingKernel::run_epilogue(const Launch& launch, const Image& out, const int64_t (&at)[4], int64_t pixels,
                                 int64_t first, int64_t last, float* scratch, const float* averages) const {
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  const int rank = spatial_ + 2;
  const auto offset = [&](const auto& stride_of) {
    int64_t sum = at[0] * stride_of(0) + first * stride_of(1);
    for (int d = 0; d < spatial_; ++d) sum += at[4 - spatial_ + d] * stride_of(2 + d);
    return sum;
  };
  const TensorArg& target = launch.outputs[0];
  float* data = element_at(out.data, offset([&](int d) { return target.strides[d]; }), out.size);
  const BlockOutput output{data, out.strides[4], out.strides[1], out.dtype};
  BlockInput inputs[kMaxProgramInputs];
  inputs[0] = averages ? BlockInput{averages, 0, 1} : BlockInput{data, out.strides[4], out.strides[1]};
  for (size_t i = 1; i < launch.inputs.size(); ++i) {
    const TensorArg& operand = launch.inputs[i];
    const auto stride_of = [&](int d) { return broadcast_stride_at(operand, d, rank); };
    inputs[i] = {operand.as<float>() + offset(stride_of), stride_of(rank - 1), stride_of(1)};
  }
  run_block(epilogue_, pixels, last - first, inputs, &output, scratch);
}

void PoolingKernel::run(const Launch& launch) const {
  const Work work = work_of(launch.inputs[0], launch.outputs[0]);
  const Image& out = work.out;
  const int64_t row = out.dims[4], channels = out.dims[1];
  const int64_t pixels = out.dims[0] * out.dims[2] * out.dims[3] * row;
  if (pixels == 0 || channels == 0) return;
  const int64_t taps = most_taps(work);
  const bool by_rows = work.by_rows();
  const size_t bytes = scratch_bytes(work);
  const int64_t unit_pixels = by_rows ? row : 1, units = pixels / unit_pixels;
  // Few pixels (global pooling) are divided by channels.
  const int64_t pieces = units >= 4 * launch.pool.size() ? 1 : ceil_div(channels, kChannelPiece);
  const int64_t loads = std::max<int64_t>(taps, 1) * channels * unit_pixels;
  const int64_t grain = std::max<int64_t>(1, kMinTaskLoads * pieces / loads);
  launch.pool.parallel_for(units * pieces, grain, [&](int64_t begin, int64_t end, int worker) {
    auto* scratch = reinterpret_cast<float*>(launch.workspace + bytes * static_cast<size_t>(worker));
    for (int64_t unit = begin; unit < end;) {
      const int64_t piece = unit % pieces, pixel = unit / pieces * unit_pixels;
      const int64_t first = channels * piece / pieces, last = channels * (piece + 1) / pieces;
      const int64_t x = pixel % row, y = pixel / row % out.dims[3], z = pixel / (row * out.dims[3]) % out.dims[2];
      const int64_t n = pixel / (row * out.dims[3] * out.dims[2]);
      const int64_t rows = by_rows && pieces == 1 ? std::min({kRowBlock, out.dims[3] - y, end - unit}) : 1;
      const int64_t run = by_rows ? row : pieces > 1 ? 1 : std::min(row - x, end - unit);
      if (levels_.is_given())
        for (int64_t i = 0; i < run; ++i)
          pool_levels(launch, work, {n, z, y, x + i}, first, last, reinterpret_cast<std::byte*>(scratch));
      else if (by_rows)
        pool_rows(work, {n, z, y, 0}, rows, first, last, scratch + epilogue_bytes() / sizeof(float));
      else
        for (int64_t i = 0; i < run; ++i) pool_pixel(work, {n, z, y, x + i}, first, last);
      for (int64_t r = 0; r < rows && !epilogue_.is_identity() && !levels_.is_given(); ++r)
        run_epilogue(launch, out, {n, z, y + r, x}, run, first, last, scratch);
      unit += by_rows ? rows : run;
    }
  });
}

bool is_valid(const PoolingAxis& axis) {
  return std::min({axis.kernel, axis.pad_begin, axis.pad_end}) >= 0 && std::min(axis.stride, axis.dilation) >= 1 &&
         std::max({axis.kernel, axis.stride, axis.pad_begin, axis.pad_end, axis.dilation}) < kMaxParam;
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_pooling(const Record& record) {
  const auto params = decode_params<PoolingParams>(record.params);
  if (!params || params->axes.empty() || params->axes.size() > 3 ||
      !is_one_of(params->padding_rule, PaddingRule::upper_half) ||
      !std::all_of(params->axes.begin(), params->axes.end(), is_valid))
    return refuse_params("pooling");
  const ByteScale& levels = params->levels;
  if (!std::isfinite(levels.zero) || !std::isfinite(levels.scale) || (levels.is_given() && params->maximum))
    return refuse_params("pooling");
  if (record.program && (record.program->num_inputs < 1 || record.program->outputs.size() != 1))
    return fail(ErrorCode::plan_malformed, "pooling: the epilogue must have an input and one output");
  return std::make_unique<PoolingKernel>(*params, record.program);
}

}  // namespace lathe::cpu
