// SPDX-License-Identifier: Apache-2.0
#include "base/divide.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/depthwise/depthwise.h"
#include "kernels/cpu/depthwise/strip.h"
#include "kernels/cpu/gemm/row_map.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace depthwise;

class Depthwise final : public Kernel {
 public:
  Depthwise(const DepthwiseParams& params, Epilogue epilogue)
      : shape_(params.shape), config_(params.config), packed_(params.packed), epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override;
  size_t workspace_bytes(std::span<const TensorArg>, std::span<const TensorArg>, int) const override {
    return packed_ ? 0 : static_cast<size_t>(packed_floats(shape_)) * sizeof(float);
  }
  void run(const Launch& launch) const override;

 private:
  Shape shape_;
  DepthwiseConfig config_;
  bool packed_;
  Epilogue epilogue_;
};

Result<> Depthwise::check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const {
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed,
                "depthwise has {} inputs and {} outputs; it takes x, weights and gives one output", inputs.size(),
                outputs.size());
  const TensorArg &x = inputs[0], &weights = inputs[1], &out = outputs[0];
  for (const TensorArg* tensor : {&x, &weights, &out})
    if (tensor->dtype != DType::f32)
      return fail(ErrorCode::type_mismatch, "depthwise computes in f32, a tensor is {}", name_of(tensor->dtype));
  const int rank = 2 + shape_.spatial;
  const bool fits = x.rank == rank && out.rank == rank && x.dims[0] == out.dims[0] && x.dims[1] == shape_.channels &&
                    out.dims[1] == shape_.channels &&
                    (shape_.channels == 1 || (x.strides[1] == 1 && out.strides[1] == 1));
  if (!fits)
    return fail(ErrorCode::shape_mismatch, "depthwise: x and the output must have {} contiguous channels",
                shape_.channels);
  bool holds = packed_ ? weights.rank == 1 && weights.dims[0] >= packed_floats(shape_)
                       : weights.rank == rank && weights.dims[0] == shape_.channels && weights.dims[1] == 1;
  for (int d = 0; !packed_ && holds && d < shape_.spatial; ++d)
    holds = weights.dims[2 + d] == shape_.kernel[3 - shape_.spatial + d];
  if (!holds) return fail(ErrorCode::shape_mismatch, "depthwise: the weights do not fit {} channels", shape_.channels);
  return check_epilogue(epilogue_, inputs.subspan(2), out);
}

// The strips of a launch: output rows cut into pieces of at most config.pixels pixels.
class Strips {
 public:
  Strips(const Shape& shape, const DepthwiseConfig& config, const Launch& launch, const float* weights,
         const BoundEpilogue& epilogue)
      : x_(launch.inputs[0]), epilogue_(epilogue), weights_(weights) {
    const TensorArg& out = launch.outputs[0];
    const auto operands = launch.inputs.subspan(2);
    batch_ = x_.dims[0];
    const int missing = 3 - shape.spatial;
    for (int d = missing; d < 3; ++d) {
      in_[d] = x_.dims[2 + d - missing];
      in_stride_[d] = x_.strides[2 + d - missing];
      out_[d] = out.dims[2 + d - missing];
    }
    shape_ = with_padding(shape, in_, out_);
    per_row_ = ceil_div(out_[2], config.pixels);
    out_data_ = out.as<float>();
    map_.streams = 1 + epilogue.count;
    map_.add_dim(batch_);
    for (int64_t size : out_) map_.add_dim(size);
    for (int d = 0; d < out.rank; ++d) {
      if (d == 1) continue;
      const int dim = d == 0 ? 0 : d - 1 + missing;
      map_.set_stride(0, dim, out.strides[d]);
      for (int i = 0; i < epilogue.count; ++i) map_.set_stride(1 + i, dim, broadcast_stride(operands[i], d));
    }
    map_.collapse();
  }

  int64_t count() const { return batch_ * out_[0] * out_[1] * per_row_; }

  void run(int64_t first, int64_t last, int64_t first_channel, int64_t last_channel) const {
    static const auto function = LATHE_ISA_SELECT(depthwise_strip);
    TileRows where;
    Strip strip{};
    strip.shape = &shape_;
    strip.in = in_;
    strip.in_stride = in_stride_;
    strip.weights = weights_;
    strip.weight_stride = packed_floats(shape_) / shape_.volume();
    strip.first_channel = first_channel;
    strip.last_channel = last_channel;
    strip.epilogue = &epilogue_;
    strip.where = &where;
    for (int64_t s = first; s < last; ++s) {
      const int64_t row = s / per_row_, piece = s % per_row_;
      const int64_t begin = out_[2] * piece / per_row_, end = out_[2] * (piece + 1) / per_row_;
      const int64_t h = row % out_[1], d = row / out_[1] % out_[0], n = row / (out_[1] * out_[0]);
      strip.x = x_.as<float>() + n * x_.strides[0];
      strip.corner = {d * shape_.stride[0] - shape_.pad[0], h * shape_.stride[1] - shape_.pad[1],
                      begin * shape_.stride[2] - shape_.pad[2]};
      strip.pixels = static_cast<int>(end - begin);
      map_.fill(row * out_[2] + begin, strip.pixels, [&](int stream, int pixel, int64_t offset) {
        if (stream == 0)
          where.out[pixel] = out_data_ + offset;
        else if (epilogue_.operands[stream - 1].varies_by_row)
          where.operand[stream - 1][pixel] = epilogue_.operands[stream - 1].data + offset;
      });
      function(strip);
    }
  }

 private:
  Shape shape_;
  const TensorArg& x_;
  const BoundEpilogue& epilogue_;
  const float* weights_;
  float* out_data_;
  int64_t batch_ = 1, per_row_ = 1;
  std::array<int64_t, 3> in_{1, 1, 1}, out_{1, 1, 1}, in_stride_{};
  gemm::RowMap<1 + kMaxEpilogueOperands> map_;
};

void Depthwise::run(const Launch& launch) const {
  const TensorArg& out = launch.outputs[0];
  if (out.volume() == 0) return;
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, launch.inputs.subspan(2), out, 1);
  const float* weights = launch.inputs[1].as<float>();
  if (!packed_) {
    const TensorArg& w = launch.inputs[1];
    std::array<int64_t, 3> tap_strides{};
    for (int d = 0; d < shape_.spatial; ++d) tap_strides[3 - shape_.spatial + d] = w.strides[2 + d];
    auto* packed = reinterpret_cast<float*>(launch.workspace);
    pack_weights(shape_, weights, w.strides[0], tap_strides, {packed, static_cast<size_t>(packed_floats(shape_))});
    weights = packed;
  }
  const Strips strips(shape_, config_, launch, weights, epilogue);
  // About 5 us of work: a product costs some 0.1 ns here, moving data included.
  const int64_t products = out.volume() * (shape_.volume() + 8);
  const bool split = products > 100'000;
  constexpr int64_t kUnit = 16;
  const int64_t blocks = ceil_div(shape_.channels, kUnit);
  if (config_.split_channels && split)
    return launch.pool.parallel_for(blocks, 1, [&](int64_t begin, int64_t end, int) {
      strips.run(0, strips.count(), begin * kUnit, std::min(end * kUnit, shape_.channels));
    });
  launch.pool.parallel_for(strips.count(), split ? 1 : strips.count(),
                           [&](int64_t begin, int64_t end, int) { strips.run(begin, end, 0, shape_.channels); });
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_depthwise(const Record& record) {
  const auto params = decode_counts<DepthwiseParams>(record.params);
  constexpr int64_t kMaxVolume = 1 << 20;
  if (!params || !conv::is_valid_window(params->shape, kMaxVolume) || params->shape.channels < 1 ||
      params->config.pixels < 1 || params->config.pixels > kMaxPixels)
    return refuse_params("depthwise");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  return std::unique_ptr<Kernel>(new Depthwise(*params, std::move(epilogue)));
}

}  // namespace lathe::cpu
