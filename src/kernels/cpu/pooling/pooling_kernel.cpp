// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/pooling/pooling.h"
#include "kernels/cpu/program_block.h"

namespace lathe::cpu {
namespace {

constexpr int64_t kMinTaskLoads = 20000;  // elements read, about 5 us
constexpr int64_t kMaxParam = int64_t{1} << 31;

// The taps of one axis for one output coordinate that lie inside the input, and how many the divisor counts.
struct Taps {
  int64_t first, count, padded_count;
};

Taps taps_of(const PoolingAxis& axis, int64_t extent, int64_t output) {
  const int64_t kernel = axis.kernel == 0 ? extent : axis.kernel;
  const int64_t start = output * axis.stride - axis.pad_begin;
  const auto below = [&](int64_t limit) {  // taps whose position is less than limit
    return limit <= start ? 0 : std::min(kernel, (limit - start + axis.dilation - 1) / axis.dilation);
  };
  const int64_t skipped = below(0);
  return {start + skipped * axis.dilation, std::max<int64_t>(0, below(extent) - skipped), below(extent + axis.pad_end)};
}

// Tensors as N, C, three spatial dimensions.
struct Image {
  float* data;
  int64_t dims[5], strides[5];
  explicit Image(const TensorArg& tensor) : data(tensor.as<float>()) {
    const int missing = 5 - tensor.rank;
    for (int d = 0; d < 5; ++d) {
      const int own = d < 2 ? d : d - missing;
      dims[d] = d >= 2 && own < 2 ? 1 : tensor.dims[own];
      strides[d] = d >= 2 && own < 2 ? 0 : tensor.strides[own];
    }
  }
};

class PoolingKernel final : public Kernel {
 public:
  PoolingKernel(const PoolingParams& params, const Program* program)
      : maximum_(params.maximum),
        spatial_(static_cast<int>(params.axes.size())),
        count_include_pad_(params.count_include_pad),
        epilogue_(program ? BlockProgram(*program) : BlockProgram()) {
    std::copy(params.axes.begin(), params.axes.end(), axes_ + 3 - spatial_);
  }
  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int threads) const override {
    return epilogue_.is_identity() ? 0 : scratch_stride() * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  size_t scratch_stride() const { return (epilogue_.scratch_bytes() + 63) / 64 * 64; }
  void pool_pixel(const Image& in, const Image& out, const int64_t (&at)[4], int64_t first, int64_t last) const;
  void run_epilogue(const Launch& launch, const Image& out, const int64_t (&at)[4], int64_t pixels, int64_t first,
                    int64_t last, int worker) const;

  const bool maximum_;
  const int spatial_;
  const bool count_include_pad_;
  PoolingAxis axes_[3];
  const BlockProgram epilogue_;
};

Result<> PoolingKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() != static_cast<size_t>(epilogue_.num_inputs()) || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "pooling: {} inputs and {} outputs given, {} and 1 expected",
                inputs.size(), outputs.size(), epilogue_.num_inputs());
  for (const std::span<const TensorArg> tensors : {inputs, outputs})
    for (const TensorArg& tensor : tensors)
      if (tensor.dtype != DType::f32)
        return fail(ErrorCode::dtype_unsupported, "pooling: an operand is {}; only f32 is supported",
                    name_of(tensor.dtype));
  const TensorArg &in = inputs[0], &out = outputs[0];
  if (in.rank != spatial_ + 2 || out.rank != in.rank || in.dims[0] != out.dims[0] || in.dims[1] != out.dims[1])
    return fail(ErrorCode::shape_mismatch, "pooling: input and output must be N C and {} spatial dimensions", spatial_);
  for (const TensorArg& operand : inputs.subspan(1))
    if (!broadcasts_to(operand, out))
      return fail(ErrorCode::shape_mismatch, "pooling: an operand of the epilogue does not broadcast to the output");
  return {};
}

// Channels [first, last) of the output pixel at = {n, three spatial coordinates}.
void PoolingKernel::pool_pixel(const Image& in, const Image& out, const int64_t (&at)[4], int64_t first,
                               int64_t last) const {
  static const auto maximum = LATHE_ISA_SELECT(pool_maximum);
  static const auto average = LATHE_ISA_SELECT(pool_average);
  PoolWindow window{in.data + at[0] * in.strides[0] + first * in.strides[1], {}, {}};
  float* target = out.data + at[0] * out.strides[0] + first * out.strides[1];
  double count = 1;  // of pixels; a hostile kernel size cannot overflow it
  for (int d = 0; d < 3; ++d) {
    const Taps taps = taps_of(axes_[d], in.dims[d + 2], at[d + 1]);
    window.data += taps.first * in.strides[d + 2] * (taps.count > 0);
    window.count[d] = taps.count;
    window.stride[d] = axes_[d].dilation * in.strides[d + 2];
    target += at[d + 1] * out.strides[d + 2];
    count *= static_cast<double>(count_include_pad_ ? taps.padded_count : taps.count);
  }
  const float scale = count > 0 ? static_cast<float>(1 / count) : 0.0f;
  const bool contiguous = in.strides[1] == 1 && out.strides[1] == 1;
  const int64_t step = contiguous ? last - first : 1;
  for (int64_t c = first; c < last; c += step, window.data += in.strides[1], target += out.strides[1])
    maximum_ ? maximum(window, step, target) : average(window, step, scale, target);
}

// Pixels of one row of the output, in place.
void PoolingKernel::run_epilogue(const Launch& launch, const Image& out, const int64_t (&at)[4], int64_t pixels,
                                 int64_t first, int64_t last, int worker) const {
  static const auto run_block = LATHE_ISA_SELECT(run_program_block);
  const int rank = spatial_ + 2;
  const auto offset = [&](const auto& stride_of) {
    int64_t sum = at[0] * stride_of(0) + first * stride_of(1);
    for (int d = 0; d < spatial_; ++d) sum += at[4 - spatial_ + d] * stride_of(2 + d);
    return sum;
  };
  const TensorArg& target = launch.outputs[0];
  float* data = out.data + offset([&](int d) { return target.strides[d]; });
  const BlockOutput output{data, out.strides[4], out.strides[1]};
  BlockInput inputs[kMaxProgramInputs];
  inputs[0] = {data, out.strides[4], out.strides[1]};
  for (size_t i = 1; i < launch.inputs.size(); ++i) {
    const TensorArg& operand = launch.inputs[i];
    const auto stride_of = [&](int d) { return broadcast_stride_at(operand, d, rank); };
    inputs[i] = {operand.as<float>() + offset(stride_of), stride_of(rank - 1), stride_of(1)};
  }
  auto* scratch = reinterpret_cast<float*>(launch.workspace + scratch_stride() * static_cast<size_t>(worker));
  run_block(epilogue_, pixels, last - first, inputs, &output, scratch);
}

void PoolingKernel::run(const Launch& launch) const {
  const Image in(launch.inputs[0]), out(launch.outputs[0]);
  const int64_t row = out.dims[4], channels = out.dims[1];
  const int64_t pixels = out.dims[0] * out.dims[2] * out.dims[3] * row;
  if (pixels == 0 || channels == 0) return;
  int64_t taps = 1;
  for (int d = 0; d < 3; ++d) taps *= axes_[d].kernel == 0 ? in.dims[d + 2] : std::min(axes_[d].kernel, in.dims[d + 2]);
  // Few pixels (global pooling) are divided by channels.
  constexpr int64_t kChannelPiece = 64;
  const int64_t pieces = pixels >= 4 * launch.pool.size() ? 1 : (channels + kChannelPiece - 1) / kChannelPiece;
  const int64_t grain = std::max<int64_t>(1, kMinTaskLoads * pieces / (std::max<int64_t>(taps, 1) * channels));
  launch.pool.parallel_for(pixels * pieces, grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t unit = begin; unit < end;) {
      const int64_t piece = unit % pieces, pixel = unit / pieces;
      const int64_t first = channels * piece / pieces, last = channels * (piece + 1) / pieces;
      const int64_t x = pixel % row, y = pixel / row % out.dims[3], z = pixel / (row * out.dims[3]) % out.dims[2];
      const int64_t n = pixel / (row * out.dims[3] * out.dims[2]);
      const int64_t run = pieces > 1 ? 1 : std::min(row - x, end - unit);
      for (int64_t i = 0; i < run; ++i) pool_pixel(in, out, {n, z, y, x + i}, first, last);
      if (!epilogue_.is_identity()) run_epilogue(launch, out, {n, z, y, x}, run, first, last, worker);
      unit += run;
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
      !std::all_of(params->axes.begin(), params->axes.end(), is_valid))
    return refuse_params("pooling");
  if (record.program && (record.program->num_inputs < 1 || record.program->outputs.size() != 1))
    return fail(ErrorCode::plan_malformed, "pooling: the epilogue must have an input and one output");
  return std::make_unique<PoolingKernel>(*params, record.program);
}

}  // namespace lathe::cpu
