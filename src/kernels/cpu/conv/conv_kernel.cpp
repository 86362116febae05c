// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/direct.h"
#include "kernels/cpu/conv/pixel_rows.h"
#include "kernels/cpu/conv/winograd.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {
namespace {

using namespace conv;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

class DirectConv final : public Kernel {
 public:
  DirectConv(const ConvShape& shape, const Config& config, Epilogue epilogue)
      : shape_(shape), config_(config), needs_(needs_of(shape, config)), epilogue_(std::move(epilogue)) {}

  Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const override {
    return check_conv(shape_, config_, epilogue_, inputs, outputs);
  }
  size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                         int threads) const override {
    const int64_t rows = geometry_of(shape_, inputs[0], outputs[0]).rows();
    return static_cast<size_t>(tap_bytes() + zero_bytes()) +
           gemm::scratch_bytes(config_.blocking, rows, depth(), needs_) * static_cast<size_t>(threads);
  }
  void run(const Launch& launch) const override;

 private:
  int64_t depth() const { return shape_.volume() * shape_.group_inputs(); }
  int64_t tap_bytes() const { return round_up(needs_.taps * static_cast<int64_t>(sizeof(gemm::Tap)), 64); }
  int64_t zero_bytes() const {
    return round_up(std::max(shape_.in_channels, shape_.kernel[2]) * static_cast<int64_t>(sizeof(float)), 64);
  }

  ConvShape shape_;
  Config config_;
  gemm::Needs needs_;
  Epilogue epilogue_;
};

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
  const PixelRows source(geometry, config_, needs_, taps, zeros, x.as<float>(), out, epilogue, operands);
  gemm::Problem problem;
  problem.rows = geometry.rows();
  problem.row_unit = config_.row_aligned ? geometry.out[2] : 0;
  problem.groups = shape_.groups;
  problem.group_input = shape_.group_inputs();
  problem.panels = {depth(), shape_.group_outputs(), config_.blocking.width};
  problem.packed = launch.inputs[1].as<float>();
  problem.taps = taps;
  problem.needs = needs_;
  problem.blocking = config_.blocking;
  problem.epilogue = &epilogue;
  problem.source = &source;
  gemm::run_problem(problem, launch.workspace + tap_bytes() + zero_bytes(), launch.pool);
}

Result<> validate(const ConvShape& shape, const Config& config) {
  // Products of these must not overflow, and a hostile plan must not ask for absurd scratch.
  constexpr int64_t kMaxVolume = 1 << 20;
  constexpr double kMaxWeights = 1e11;
  bool good = shape.spatial >= 1 && shape.spatial <= 3 && shape.groups >= 1 && shape.in_channels >= 1 &&
              shape.out_channels >= 1 && shape.in_channels % shape.groups == 0 &&
              shape.out_channels % shape.groups == 0 && gemm::valid(config.blocking);
  for (int d = 0; good && d < 3; ++d) {
    good = shape.kernel[d] >= 1 && shape.kernel[d] <= kMaxVolume && shape.stride[d] >= 1 && shape.dilation[d] >= 1;
    if (d < 3 - shape.spatial)
      good = good && shape.kernel[d] == 1 && shape.stride[d] == 1 && shape.dilation[d] == 1 && shape.pad[d] == 0;
  }
  good = good && shape.kernel[0] * shape.kernel[1] <= kMaxVolume && shape.volume() <= kMaxVolume &&
         static_cast<double>(shape.volume()) * static_cast<double>(shape.group_inputs()) *
                 static_cast<double>(shape.out_channels + 16 * shape.groups) <=
             kMaxWeights;
  if (good && config.algorithm == Algorithm::planar) good = shape.groups == 1 && shape.dilation[2] == 1;
  if (!good) return fail(ErrorCode::plan_malformed, "conv step has invalid parameters; build the plan again");
  return {};
}

}  // namespace

namespace conv {

std::unique_ptr<Kernel> make_direct(const ConvShape& shape, const Config& config, Epilogue epilogue) {
  return std::make_unique<DirectConv>(shape, config, std::move(epilogue));
}

Result<> check_conv(const ConvShape& shape, const Config& config, const Epilogue& epilogue,
                    std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) {
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
  if (weights.rank != 1 || weights.dims[0] < packed_floats(shape, config))
    return fail(ErrorCode::shape_mismatch, "conv: the packed weights are too small");
  return check_epilogue(epilogue, inputs.subspan(2), out);
}

}  // namespace conv

namespace conv {

Result<ConvParams> read_params(std::span<const int64_t> p) {
  bool good = p.size() == kParams;
  for (size_t i = 0; good && i < p.size(); ++i) good = p[i] >= 0 && p[i] <= INT32_MAX;
  if (!good || p[16] > 3 || p[21] > 1 || p[22] > 1)
    return fail(ErrorCode::plan_malformed, "conv step has invalid parameters; build the plan again");
  ConvShape shape{static_cast<int>(p[0]), p[1], p[2], p[3]};
  for (int d = 0; d < 3; ++d) {
    shape.kernel[d] = p[4 + d];
    shape.stride[d] = p[7 + d];
    shape.dilation[d] = p[10 + d];
    shape.pad[d] = p[13 + d];
  }
  const Config config{static_cast<Algorithm>(p[16]),
                      {static_cast<int>(p[kWidthParam]), static_cast<int>(p[18]), p[19], p[20], p[21] == 1},
                      p[22] == 1};
  LATHE_TRY(validate(shape, config));
  return ConvParams{shape, config};
}

}  // namespace conv

Result<std::unique_ptr<Kernel>> make_conv(const Record& record) {
  LATHE_ASSIGN(const ConvParams params, conv::read_params(record.params));
  LATHE_ASSIGN(Epilogue epilogue, compile_epilogue(record.program));
  if (params.config.algorithm == Algorithm::winograd2 || params.config.algorithm == Algorithm::winograd4)
    return make_winograd(params.shape, params.config, std::move(epilogue));
  return make_direct(params.shape, params.config, std::move(epilogue));
}

}  // namespace lathe::cpu
