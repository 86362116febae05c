// SPDX-License-Identifier: Apache-2.0
// A convolution as products of matrices: rows are pixels of the output, columns its channels, and the depth is taps
// with x's channels innermost. Rows are gathered from x tap by tap; the weights of a phase are packed once.
#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/contraction/lanes.h"
#include "kernels/cpu/conv_elements/phase.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/program_block.h"

namespace lathe::cpu {
namespace {

int64_t cache_lines(int64_t bytes) { return round_up(bytes, 64); }

using contraction::kColumns;
using contraction::kDepth;
using contraction::kRows;
using contraction::lane_of;
using contraction::with_elements;
using conv_elements::kMaxSpatial;
using conv_elements::Phase;
using conv_elements::Pixel;

constexpr int64_t kChunk = 8;                // blocks of columns that share the rows that were gathered
constexpr int64_t kChannels = 256;           // that are multiplied at once where each has a group of its own
constexpr int64_t kMinTaskProducts = 20000;  // about 5 us

// The memory of one thread.
struct Scratch {
  Pixel pixels[kRows];
  alignas(64) std::byte rows[kRows * kDepth * 8];
  alignas(64) std::byte sums[kChunk * kRows * kColumns * 8];
};
constexpr int64_t kScratchBytes = round_up(sizeof(Scratch), 64);

// One phase of one launch.
struct Work {
  const Launch& launch;
  const Phase& phase;
  const TensorArg &x, &weights, &y;
  int64_t group_inputs, group_outputs;
  std::byte *packed, *scratch;  // scratch: of all threads
  int64_t scratch_bytes;        // of one

  DType lane() const { return lane_of(x.dtype); }
  int64_t depth() const { return phase.taps() * group_inputs; }
  Scratch& own(int worker) const { return *reinterpret_cast<Scratch*>(scratch + scratch_bytes * worker); }
};

class ConvElementsKernel final : public Kernel {
 public:
  ConvElementsKernel(ConvElementsParams params, const Program* program)
      : params_(std::move(params)),
        has_program_(program),
        epilogue_(program ? BlockProgram(*program) : BlockProgram()) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    return static_cast<size_t>(packed_at(inputs[1]) + packed_bytes(inputs[0], inputs[1], outputs[0]) +
                               scratch_bytes() * threads);
  }
  void run(const Launch& launch) const override;

 private:
  int spatial() const { return static_cast<int>(params_.axes.size()); }
  bool is_depthwise(const TensorArg& x, const TensorArg& y) const {
    return x.dims[1] == params_.groups && y.dims[1] == params_.groups;
  }
  static int64_t packed_at(const TensorArg& weights) { return cache_lines(Phase::bytes(weights)); }
  int64_t packed_bytes(const TensorArg& x, const TensorArg& weights, const TensorArg& y) const;
  int64_t scratch_bytes() const { return kScratchBytes + cache_lines(static_cast<int64_t>(epilogue_.scratch_bytes())); }

  template <class Lane>
  void pack(const Work& work) const;
  template <class Lane>
  void gather(const Work& work, const Pixel* pixels, int64_t rows, int64_t group, int64_t begin, int64_t depth,
              Lane* block) const;
  template <class Lane>
  void run_block(const Work& work, int64_t unit, int worker) const;
  template <class Lane>
  void run_channels(const Work& work, int64_t unit, int worker) const;
  template <class Lane>
  void run_phase(const Work& work) const;
  template <class Lane>
  void store(const Work& work, const Pixel* pixels, int64_t rows, int64_t channel, int64_t channels, const Lane* sums,
             int worker) const;
  void run_epilogue(const Work& work, const Pixel& pixel, int64_t channel, int64_t channels, const float* sums,
                    int worker) const;

  const ConvElementsParams params_;
  const bool has_program_;
  const BlockProgram epilogue_;
};

Result<> ConvElementsKernel::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  const size_t most = has_program_ ? static_cast<size_t>(epilogue_.num_inputs()) + 1 : 3;
  if (inputs.size() < (has_program_ ? most : 2) || inputs.size() > most || outputs.size() != 1)
    return fail(ErrorCode::invalid_argument, "conv_elements: {} inputs and {} outputs given, {} and 1 expected",
                inputs.size(), outputs.size(), most);
  const TensorArg &x = inputs[0], &w = inputs[1], &y = outputs[0];
  const bool is_small = size_of(x.dtype) == 1;  // 8-bit integers are summed in 32 bits
  if (!contraction::is_supported(x.dtype, w.dtype, y.dtype) || (is_small && y.dtype != DType::i32) ||
      (has_program_ && y.dtype != DType::f32))
    return fail(ErrorCode::dtype_unsupported, "conv_elements: {} by {} to {}", name_of(x.dtype), name_of(w.dtype),
                name_of(y.dtype));
  const int rank = spatial() + 2;
  if (x.rank != rank || w.rank != rank || y.rank != rank)
    return fail(ErrorCode::shape_mismatch, "conv_elements: ranks {}, {} and {}, {} expected", x.rank, w.rank, y.rank,
                rank);
  const bool transposed = params_.transposed;
  const int64_t first = transposed ? x.dims[1] : y.dims[1], second = transposed ? y.dims[1] : x.dims[1];
  if (x.dims[0] != y.dims[0] || w.dims[0] != first || w.dims[0] % params_.groups != 0 || w.dims[1] > second ||
      w.dims[1] * params_.groups != second)
    return fail(ErrorCode::shape_mismatch, "conv_elements: weights of {} x {} for {} channels to {} in {} groups",
                w.dims[0], w.dims[1], x.dims[1], y.dims[1], params_.groups);
  for (const TensorArg& operand : inputs.subspan(2))
    if (operand.dtype != y.dtype || !broadcasts_to(operand, y))
      return fail(ErrorCode::shape_mismatch, "conv_elements: an operand of its epilogue does not fit the output");
  for (int d = 0; !has_program_ && inputs.size() > 2 && d < rank; ++d)
    if (d != 1 && broadcast_stride_at(inputs[2], d, rank) != 0)
      return fail(ErrorCode::shape_mismatch, "conv_elements: its bias varies along dimension {}", d);
  return {};
}

int64_t ConvElementsKernel::packed_bytes(const TensorArg& x, const TensorArg& weights, const TensorArg& y) const {
  int64_t lanes = static_cast<int64_t>(size_of(lane_of(x.dtype)));
  for (int d = 2; d < weights.rank; ++d) lanes *= weights.dims[d];
  if (is_depthwise(x, y)) return cache_lines(lanes * params_.groups);
  return cache_lines(lanes * x.dims[1] * ceil_div(y.dims[1] / params_.groups, kColumns) * kColumns);
}

// Of each group blocks of columns, each with its whole depth; where each channel is a group, the channels of each tap.
template <class Lane>
void ConvElementsKernel::pack(const Work& work) const {
  const TensorArg& w = work.weights;
  auto* const packed = reinterpret_cast<Lane*>(work.packed);
  const int64_t inner = w.strides[params_.transposed ? 0 : 1], outer = w.strides[params_.transposed ? 1 : 0];
  const int64_t group_stride = params_.transposed ? work.group_inputs * inner : work.group_outputs * outer;
  const int64_t blocks = ceil_div(work.group_outputs, kColumns), depth = work.depth(), groups = params_.groups;
  with_elements<Lane>(w.dtype, [&](auto element) {
    using T = decltype(element);
    const T* const from = w.as<T>();
    if (is_depthwise(work.x, work.y)) {
      for (int64_t tap = 0; tap < work.phase.taps(); ++tap)
        for (int64_t c = 0; c < groups; ++c)
          packed[tap * groups + c] = static_cast<Lane>(from[work.phase.weights_at(tap) + c * w.strides[0]]);
      return;
    }
    work.launch.pool.parallel_for(
        groups * blocks * depth, kMinTaskProducts / kColumns, [&](int64_t begin, int64_t end, int) {
          for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t k = unit % depth, block = unit / depth % blocks, group = unit / depth / blocks;
            const int64_t count = std::min(kColumns, work.group_outputs - block * kColumns);
            const T* row = from + group * group_stride + block * kColumns * outer +
                           work.phase.weights_at(k / work.group_inputs) + k % work.group_inputs * inner;
            Lane* to = packed + unit * kColumns;
            for (int64_t o = 0; o < count; ++o) to[o] = static_cast<Lane>(row[o * outer]);
            std::fill(to + count, to + kColumns, Lane{0});
          }
        });
  });
}

// block[r][l] = what pixel r sees at depth begin + l
template <class Lane>
void ConvElementsKernel::gather(const Work& work, const Pixel* pixels, int64_t rows, int64_t group, int64_t begin,
                                int64_t depth, Lane* block) const {
  const int64_t channels = work.group_inputs, stride = work.x.strides[1];
  with_elements<Lane>(work.x.dtype, [&](auto element) {
    using T = decltype(element);
    for (int64_t l = 0; l < depth;) {
      const int64_t tap = (begin + l) / channels, channel = (begin + l) % channels;
      const int64_t count = std::min(channels - channel, depth - l);
      for (int64_t r = 0; r < rows; ++r) {
        Lane* to = block + r * kDepth + l;
        const auto* from = reinterpret_cast<const T*>(work.phase.input_at(pixels[r], tap, group * channels + channel));
        if (!from)
          std::fill_n(to, count, Lane{0});
        else if (stride == 1)
          for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Lane>(from[i]);
        else
          for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Lane>(from[i * stride]);
      }
      l += count;
    }
  });
}

// Writes channels of some pixels, whose sums are kColumns or, of one pixel, any number apart.
template <class Lane>
void ConvElementsKernel::store(const Work& work, const Pixel* pixels, int64_t rows, int64_t channel, int64_t channels,
                               const Lane* sums, int worker) const {
  if constexpr (std::is_same_v<Lane, float>)
    if (has_program_) {
      for (int64_t r = 0; r < rows; ++r) run_epilogue(work, pixels[r], channel, channels, sums + r * kColumns, worker);
      return;
    }
  const TensorArg& y = work.y;
  const bool has_bias = work.launch.inputs.size() > 2;
  const int64_t step = y.strides[1], bias_step = has_bias ? broadcast_stride_at(work.launch.inputs[2], 1, y.rank) : 0;
  with_elements<Lane>(y.dtype, [&](auto element) {
    using T = decltype(element);
    const T* bias = has_bias ? work.launch.inputs[2].as<T>() + channel * bias_step : nullptr;
    for (int64_t r = 0; r < rows; ++r, sums += kColumns) {
      T* to = y.as<T>() + pixels[r].offset(spatial(), channel, [&](int d) { return y.strides[d]; });
      for (int64_t c = 0; c < channels; ++c)
        to[c * step] = static_cast<T>(bias ? sums[c] + static_cast<Lane>(bias[c * bias_step]) : sums[c]);
    }
  });
}

// Channels of one pixel. Nothing is stored before the program has read what lies there: the output may lie where one of
// its operands does.
void ConvElementsKernel::run_epilogue(const Work& work, const Pixel& pixel, int64_t channel, int64_t channels,
                                      const float* sums, int worker) const {
  static const auto run_program = LATHE_ISA_SELECT(run_program_block);
  const TensorArg& y = work.y;
  const std::span<const TensorArg> inputs = work.launch.inputs;
  auto* scratch = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(&work.own(worker)) + kScratchBytes);
  BlockInput operands[kMaxProgramInputs];
  operands[0] = {sums, 0, 1};
  for (size_t i = 2; i < inputs.size(); ++i) {
    const auto stride_of = [&](int d) { return broadcast_stride_at(inputs[i], d, y.rank); };
    operands[i - 1] = {inputs[i].as<float>() + pixel.offset(spatial(), channel, stride_of), 0, stride_of(1)};
  }
  float* data = y.as<float>() + pixel.offset(spatial(), channel, [&](int d) { return y.strides[d]; });
  const BlockOutput output{data, 0, y.strides[1]};
  run_program(epilogue_, 1, channels, operands, &output, scratch);
}

// Some pixels and some blocks of columns of one group.
template <class Lane>
void ConvElementsKernel::run_block(const Work& work, int64_t unit, int worker) const {
  static const auto multiply = LATHE_ISA_SELECT(multiply_blocks);
  Scratch& scratch = work.own(worker);
  const int64_t blocks = ceil_div(work.group_outputs, kColumns), chunks = ceil_div(blocks, kChunk);
  const int64_t row_blocks = ceil_div(work.phase.pixels(), kRows), depth = work.depth();
  const int64_t first_block = unit % chunks * kChunk, own_blocks = std::min(kChunk, blocks - first_block);
  const int64_t row = unit / chunks % row_blocks * kRows, group = unit / chunks / row_blocks;
  const int64_t rows = std::min(kRows, work.phase.pixels() - row);
  auto* const gathered = reinterpret_cast<Lane*>(scratch.rows);
  auto* const sums = reinterpret_cast<Lane*>(scratch.sums);
  const Lane* packed = reinterpret_cast<const Lane*>(work.packed) + (group * blocks + first_block) * depth * kColumns;
  const auto columns_of = [&](int64_t b) {
    return std::min(kColumns, work.group_outputs - (first_block + b) * kColumns);
  };
  work.phase.locate(row, rows, scratch.pixels);
  std::fill_n(sums, own_blocks * kRows * kColumns, Lane{0});
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t count = std::min(kDepth, depth - k);
    gather(work, scratch.pixels, rows, group, k, count, gathered);
    for (int64_t b = 0; b < own_blocks; ++b)
      multiply(work.lane(), gathered, packed + (b * depth + k) * kColumns, sums + b * kRows * kColumns, rows, count,
               columns_of(b));
  }
  for (int64_t b = 0; b < own_blocks; ++b)
    store(work, scratch.pixels, rows, group * work.group_outputs + (first_block + b) * kColumns, columns_of(b),
          sums + b * kRows * kColumns, worker);
}

// Some pixels and channels, where each channel is a group.
template <class Lane>
void ConvElementsKernel::run_channels(const Work& work, int64_t unit, int worker) const {
  static const auto multiply = LATHE_ISA_SELECT(multiply_channels);
  Scratch& scratch = work.own(worker);
  const int64_t chunks = ceil_div(params_.groups, kChannels), stride = work.x.strides[1];
  const int64_t row = unit / chunks * kRows, rows = std::min(kRows, work.phase.pixels() - row);
  const int64_t channel = unit % chunks * kChannels, channels = std::min(kChannels, params_.groups - channel);
  auto* const converted = reinterpret_cast<Lane*>(scratch.rows);
  auto* const sums = reinterpret_cast<Lane*>(scratch.sums);
  const Lane* packed = reinterpret_cast<const Lane*>(work.packed) + channel;
  work.phase.locate(row, rows, scratch.pixels);
  with_elements<Lane>(work.x.dtype, [&](auto element) {
    using T = decltype(element);
    const bool direct = stride == 1 && std::is_same_v<T, Lane>;
    for (int64_t r = 0; r < rows; ++r) {
      std::fill_n(sums, channels, Lane{0});
      for (int64_t tap = 0; tap < work.phase.taps(); ++tap) {
        const auto* from = reinterpret_cast<const T*>(work.phase.input_at(scratch.pixels[r], tap, channel));
        if (!from) continue;
        for (int64_t c = 0; !direct && c < channels; ++c) converted[c] = static_cast<Lane>(from[c * stride]);
        const void* x = direct ? static_cast<const void*>(from) : converted;
        multiply(work.lane(), x, packed + tap * params_.groups, sums, channels);
      }
      store(work, scratch.pixels + r, 1, channel, channels, sums, worker);
    }
  });
}

template <class Lane>
void ConvElementsKernel::run_phase(const Work& work) const {
  pack<Lane>(work);
  const bool depthwise = is_depthwise(work.x, work.y);
  const int64_t row_blocks = ceil_div(work.phase.pixels(), kRows);
  const int64_t chunks = depthwise ? ceil_div(params_.groups, kChannels)
                                   : params_.groups * ceil_div(ceil_div(work.group_outputs, kColumns), kChunk);
  const int64_t width = std::min(depthwise ? params_.groups : work.group_outputs, kChunk * kColumns);
  const int64_t products = std::max<int64_t>(1, std::min(kRows, work.phase.pixels()) * work.depth() * width);
  work.launch.pool.parallel_for(row_blocks * chunks, std::max<int64_t>(1, kMinTaskProducts / products),
                                [&](int64_t begin, int64_t end, int worker) {
                                  for (int64_t unit = begin; unit < end; ++unit)
                                    depthwise ? run_channels<Lane>(work, unit, worker)
                                              : run_block<Lane>(work, unit, worker);
                                });
}

void ConvElementsKernel::run(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], &weights = launch.inputs[1], &y = launch.outputs[0];
  if (y.volume() == 0) return;
  std::byte* packed = launch.workspace + packed_at(weights);
  std::byte* scratch = packed + packed_bytes(x, weights, y);
  for (int64_t index = 0; index < Phase::count(params_); ++index) {
    const Phase phase(params_, x, weights, y, index, launch.workspace);
    if (phase.pixels() == 0) continue;
    const Work work{
        launch,  phase,          x, weights, y, x.dims[1] / params_.groups, y.dims[1] / params_.groups, packed,
        scratch, scratch_bytes()};
    contraction::with_lane(x.dtype, [&](auto lane) { run_phase<decltype(lane)>(work); });
  }
}

bool is_valid(const ConvElementsParams& params) {
  constexpr int64_t kMost = int64_t{1} << 32;
  constexpr double kMostPhases = 1 << 20;
  double phases = 1;
  for (size_t d = 0; d < params.axes.size(); ++d) {
    const ConvElementsParams::Axis& axis = params.axes[d];
    if (axis.stride < 1 || axis.stride > kMost || axis.dilation < 1 || axis.dilation > kMost ||
        !is_one_of(axis.rule, PaddingRule::upper_half) || axis.padding < -kMost || axis.padding > kMost)
      return false;
    phases *= static_cast<double>(params.phases(d));
  }
  return !params.axes.empty() && params.axes.size() <= kMaxSpatial && params.groups >= 1 && params.groups <= kMost &&
         phases <= kMostPhases;
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_conv_elements(const Record& record) {
  std::optional<ConvElementsParams> params = decode_params<ConvElementsParams>(record.params);
  if (!params || !is_valid(*params) ||
      (record.program && (record.program->num_inputs < 1 || record.program->outputs.size() != 1)))
    return refuse_params("conv_elements");
  return std::make_unique<ConvElementsKernel>(*std::move(params), record.program);
}

}  // namespace lathe::cpu
