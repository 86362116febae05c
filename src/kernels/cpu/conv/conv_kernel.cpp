// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/divide.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/direct.h"
#include "kernels/cpu/conv/pixel_rows.h"
#include "kernels/cpu/conv/winograd.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace conv;

class DirectConv final : public Kernel {
 public:
  DirectConv(const ConvParams& params, Epilogue epilogue)
      : shape_(params.shape),
        config_(params.config),
        packed_(params.packed),
        needs_(needs_of(shape_, config_)),
        epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    return check_conv({shape_, config_, packed_}, epilogue_, inputs, outputs);
  }
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    const int64_t rows = geometry_of(shape_, inputs[0], outputs[0]).rows();
    return static_cast<size_t>(start_bytes()) +
           gemm::scratch_bytes(config_.blocking, rows, depth(), needs_) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  int64_t depth() const { return shape_.volume() * shape_.group_inputs(); }
  int64_t tap_bytes() const { return round_up(needs_.taps * static_cast<int64_t>(sizeof(gemm::Tap)), 64); }
  int64_t zero_bytes() const {
    return round_up(std::max(shape_.in_channels, shape_.kernel[2]) * static_cast<int64_t>(sizeof(float)), 64);
  }

  int64_t packed_at() const { return tap_bytes() + zero_bytes(); }
  int64_t start_bytes() const {
    const int64_t floats = packed_ ? 0 : packed_floats(shape_, config_);
    return packed_at() + round_up(floats * static_cast<int64_t>(sizeof(float)), 64);
  }
  const float* pack(const Launch& launch) const;

  ConvShape shape_;
  ConvConfig config_;
  bool packed_;
  gemm::Needs needs_;
  Epilogue epilogue_;
};

// Weights [O, C / groups, kernel...] as pack_weights() packs them.
const float* DirectConv::pack(const Launch& launch) const {
  const TensorArg& w = launch.inputs[1];
  auto* packed = reinterpret_cast<float*>(launch.workspace + packed_at());
  const gemm::Panels panels{depth(), shape_.group_outputs(), config_.blocking.width};
  const int64_t inputs = shape_.group_inputs(), taps = shape_.volume();
  const bool planar = config_.algorithm == Algorithm::planar;
  launch.pool.parallel_for(shape_.groups * panels.count(), 1, [&](int64_t first, int64_t last, int) {
    for (int64_t p = first; p < last; ++p)
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t group = p / panels.count();
        const float* from = w.as<float>() + group * panels.n * w.strides[0] + tap_offset(shape_, w, t);
        gemm::pack_rows(panels, p % panels.count(),
                        {from, inputs, w.strides[1], w.strides[0], planar ? t : t * inputs, planar ? taps : 1},
                        packed + group * panels.floats());
      }
  });
  return packed;
}

void DirectConv::run(const Launch& launch) const {
  const TensorArg &x = launch.inputs[0], &out = launch.outputs[0];
  if (out.volume() == 0) return;
  const auto operands = launch.inputs.subspan(2);
  const Geometry geometry = geometry_of(shape_, x, out);
  auto* taps = reinterpret_cast<gemm::Tap*>(launch.workspace);
  write_taps(geometry, config_, taps);
  auto* zeros = reinterpret_cast<float*>(launch.workspace + tap_bytes());
  std::memset(zeros, 0, static_cast<size_t>(zero_bytes()));
  const BoundEpilogue epilogue = bind_epilogue(epilogue_, operands, out, 1);
  const OutputRows rows(geometry, out, epilogue, operands);
  const PixelRows source(geometry, config_, needs_, taps, zeros, x.as<float>(), rows);
  gemm::GemmProblem problem;
  problem.rows = geometry.rows();
  problem.row_unit = config_.row_aligned ? geometry.out[2] : 0;
  problem.groups = shape_.groups;
  problem.group_input = shape_.group_inputs();
  problem.panels = {depth(), shape_.group_outputs(), config_.blocking.width};
  problem.packed = packed_ ? launch.inputs[1].as<float>() : pack(launch);
  problem.taps = taps;
  problem.needs = needs_;
  problem.blocking = config_.blocking;
  problem.epilogue = &epilogue;
  problem.source = &source;
  gemm::run_problem(problem, launch.workspace + start_bytes(), launch.pool);
}

}  // namespace

namespace conv {

std::unique_ptr<Kernel> make_direct(const ConvParams& params, Epilogue epilogue) {
  return std::make_unique<DirectConv>(params, std::move(epilogue));
}

Result<> check_conv(const ConvParams& params, const Epilogue& epilogue, std::span<const TensorArg> inputs,
                    std::span<const TensorArg> outputs) {
  const auto& [shape, config, packed] = params;
  if (inputs.size() < 2 || outputs.size() != 1)
    return fail(ErrorCode::plan_malformed,
                "conv has {} inputs and {} outputs; it takes x, weights and gives one output", inputs.size(),
                outputs.size());
  const TensorArg &x = inputs[0], &weights = inputs[1], &out = outputs[0];
  for (const TensorArg* tensor : {&x, &weights, &out})
    if (tensor->dtype != DType::f32)
      return fail(ErrorCode::type_mismatch, "conv computes in f32, a tensor is {}", name_of(tensor->dtype));
  const int rank = 2 + shape.spatial;
  if (x.rank != rank || out.rank != rank || x.dims[0] != out.dims[0] || x.dims[1] != shape.in_channels ||
      out.dims[1] != shape.out_channels)
    return fail(ErrorCode::shape_mismatch, "conv: x and the output do not fit {} input and {} output channels",
                shape.in_channels, shape.out_channels);
  const bool planar = config.algorithm == Algorithm::planar;
  const int dense = planar ? rank - 1 : 1;
  if ((x.strides[dense] != 1 && x.dims[dense] != 1) || (out.strides[1] != 1 && out.dims[1] != 1))
    return fail(ErrorCode::shape_mismatch, "conv: {} of x and the channels of the output must be contiguous",
                planar ? "rows" : "channels");
  if (packed ? weights.rank != 1 || weights.dims[0] < packed_floats(shape, config)
             : !are_weights(shape, weights, shape.group_inputs()))
    return fail(ErrorCode::shape_mismatch, "conv: the weights do not fit {} input and {} output channels",
                shape.in_channels, shape.out_channels);
  return check_epilogue(epilogue, inputs.subspan(2), out);
}

bool is_valid(const ConvParams& params) {
  // Products of these must not overflow, and a hostile plan must not ask for absurd scratch.
  constexpr int64_t kMaxVolume = 1 << 20;
  constexpr double kMaxWeights = 1e11;
  const auto& [shape, config, packed] = params;
  return is_one_of(config.algorithm, Algorithm::winograd4) && gemm::valid(config.blocking) &&
         is_valid_window(shape, kMaxVolume) && shape.groups >= 1 && shape.in_channels >= 1 && shape.out_channels >= 1 &&
         shape.in_channels % shape.groups == 0 && shape.out_channels % shape.groups == 0 &&
         static_cast<double>(shape.volume()) * static_cast<double>(shape.group_inputs()) *
                 static_cast<double>(shape.out_channels + 16 * shape.groups) <=
             kMaxWeights &&
         (config.algorithm != Algorithm::planar || (shape.groups == 1 && shape.dilation[2] == 1));
}

}  // namespace conv

Result<std::unique_ptr<Kernel>> make_conv(const Record& record) {
  const auto params = decode_counts<ConvParams>(record.params);
  if (!params || !is_valid(*params)) return refuse_params("conv");
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  if (!is_winograd(params->config.algorithm)) return std::make_unique<DirectConv>(*params, std::move(epilogue));
  if (params->packed) return refuse_params("conv");
  return make_winograd(params->shape, params->config, std::move(epilogue));
}

}  // namespace lathe::cpu
