// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/libraries/cudnn_tactic.h"

#include <algorithm>
#include <limits>

#include "kernels/cuda/conv/weights_tactic.h"
#include "kernels/cuda/conv/window_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/pack_tactic.h"

namespace lathe::cuda {
namespace {

using convolution::ConvolutionArg;

constexpr size_t kEngines = 5;  // that are timed
constexpr size_t kFirstOperand = 2;

// A part of a region's program that the library runs on its sums.
struct Stage {
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  std::optional<size_t> operand;  // of the problem: a constant for each channel
  float first = 0, second = 0;    // what the mode asks for
};

constexpr std::pair<Opcode, cudnnPointwiseMode_t> kActivations[] = {
    {Opcode::relu, CUDNN_POINTWISE_RELU_FWD},
    {Opcode::leaky_relu, CUDNN_POINTWISE_RELU_FWD},
    {Opcode::clip, CUDNN_POINTWISE_RELU_FWD},
    {Opcode::elu, CUDNN_POINTWISE_ELU_FWD},
    {Opcode::tanh, CUDNN_POINTWISE_TANH_FWD},
    {Opcode::sigmoid, CUDNN_POINTWISE_SIGMOID_FWD},
    {Opcode::silu, CUDNN_POINTWISE_SWISH_FWD},
    {Opcode::gelu_erf, CUDNN_POINTWISE_GELU_FWD},
    {Opcode::gelu_tanh, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD}};

std::optional<Stage> activation_stage(const Instruction& each) {
  const auto mode = std::ranges::find(kActivations, each.op, &std::pair<Opcode, cudnnPointwiseMode_t>::first);
  if (mode == std::end(kActivations)) return std::nullopt;
  const auto [x, y] = each.immediates;
  switch (each.op) {
    case Opcode::relu:
    case Opcode::leaky_relu:  // slope, and the largest result
      return Stage{mode->second, {}, x, std::numeric_limits<float>::infinity()};
    case Opcode::clip:
      return x == 0 && y > 0 ? std::optional(Stage{mode->second, {}, 0, y}) : std::nullopt;
    default:
      return Stage{mode->second, {}, x, 0};
  }
}

// The program as stages; nullopt where the library has no such.
std::optional<std::vector<Stage>> stages_of(const Problem& problem) {
  if (problem.program.code.size() > convolution::kMaxStages) return std::nullopt;
  const auto chain = chain_of(problem, 1);  // the channels
  if (!chain) return std::nullopt;
  std::vector<Stage> stages;
  for (const ChainLink& link : *chain) {
    std::optional<Stage> stage = activation_stage(*link.instruction);
    if (link.operand) {
      if (!is_short_float(problem.operands[*link.operand].dtype)) return std::nullopt;
      const bool adds = link.instruction->op == Opcode::add;
      stage = {adds ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_MUL, link.operand, 0, 0};
    }
    if (!stage) return std::nullopt;
    stages.push_back(*stage);
  }
  return stages;
}

struct Call {
  ConvShape attributes;
  std::optional<std::vector<Stage>> stages;  // nullopt: the program is none of the library's
  // Of sums that a launch of their own finishes. The library writes the type that it reads: as a network does that is
  // run layer by layer.
  std::unique_ptr<Finishing> finishing;
};

std::optional<std::string> describe(const Problem& problem, Call& call) {
  if (!problem.is(OpKind::convolution)) return "not a convolution";
  const Operand &x = problem.inputs[0], &w = problem.inputs[1], &y = problem.outputs[0];
  if (!w.constant) return "the weights are not constant";
  if (!is_short_float(x.dtype) || w.dtype != x.dtype)
    return fmt::format("{} by {} is none of f32, f16 and bf16", name_of(x.dtype), name_of(w.dtype));
  if (w.constant->volume() == 0) return "an empty dimension";
  if (auto reason = resolve_conv_shape(problem, call.attributes)) return reason;
  if (y.dtype == x.dtype) call.stages = stages_of(problem);
  call.finishing = std::make_unique<Finishing>(problem, x.dtype, Layout::channels_last);
  return call.stages ? std::nullopt : call.finishing->refusal();
}

// Dims or strides of an image N C spatial..., as N C D H W.
std::array<Expr, 5> five(const Shape& values, const Expr& fill) {
  std::array<Expr, 5> result = {values[0], values[1], fill, fill, fill};
  for (size_t d = 2; d < values.size(); ++d) result[5 - values.size() + d] = values[d];
  return result;
}

// Strides of dimensions of extent 1 mean nothing, but the library wants them to be possible.
std::array<Expr, 5> strides_of(const Operand& operand) {
  std::array<Expr, 5> strides = five(operand.strides, Expr(0));
  const std::array<Expr, 5> dims = five(operand.dims, Expr(1));
  const bool planar = operand.strides[1] != Expr(1) && operand.dims[1] != Expr(1);
  const std::array<size_t, 5> order =
      planar ? std::array<size_t, 5>{4, 3, 2, 1, 0} : std::array<size_t, 5>{1, 4, 3, 2, 0};
  Expr next = 1;  // where the next dimension would begin, if it followed
  for (const size_t d : order) {
    if (dims[d] == Expr(1)) strides[d] = next;
    next = strides[d] * dims[d];
  }
  return strides;
}

// Padding at the end: that at the beginning where it gives the output, for most engines pad alike, or else what the
// last window needs.
Expr pad_end(const ConvShape& a, size_t d, const Expr& in, const Expr& out) {
  const Expr reach = (a.kernel[d] - 1) * a.dilation[d] + 1;
  if (floordiv(in + 2 * a.pad[d] - reach, a.stride[d]) + 1 == out) return a.pad[d];
  return max(Expr(0), (out - 1) * a.stride[d] + reach - in - a.pad[d]);
}

void add_stages(const std::vector<Stage>& stages, const Problem& problem, std::vector<LaunchArg>& args) {
  args[ConvolutionArg::kNumStages] = number_arg(static_cast<int64_t>(stages.size()));
  for (size_t i = 0; i < stages.size(); ++i) {
    LaunchArg* const fields = &args[ConvolutionArg::kStages + i * convolution::kStageFields];
    fields[convolution::kMode] = number_arg(int64_t{stages[i].mode});
    fields[convolution::kFirstFloat] = float_arg(stages[i].first);
    fields[convolution::kSecondFloat] = float_arg(stages[i].second);
    if (!stages[i].operand) continue;
    fields[convolution::kHasOperand] = number_arg(1);
    fields[convolution::kOperandDtype] = number_arg(static_cast<int64_t>(problem.operands[*stages[i].operand].dtype));
    args[ConvolutionArg::kOperands + i] = {
        LaunchArg::input, static_cast<uint32_t>(kFirstOperand + *stages[i].operand), {}};
  }
}

// Without an engine.
std::vector<LaunchArg> args_of(const Problem& problem, const Call& call, bool fused) {
  const Operand &x = problem.inputs[0], &y = problem.outputs[0];
  const ConvShape& a = call.attributes;
  std::vector<LaunchArg> args(convolution::kNumArgs);
  const auto set = [&](size_t arg, const Expr& value) { args[arg] = number_arg(value); };
  const auto set_all = [&](size_t first, const auto& values) {
    for (size_t i = 0; i < values.size(); ++i) set(first + i, values[i]);
  };
  args[ConvolutionArg::kX] = {LaunchArg::input, 0, {}};
  args[ConvolutionArg::kWeights] = {LaunchArg::input, 1, {}};
  args[ConvolutionArg::kY] = fused ? LaunchArg{LaunchArg::output, 0, {}} : LaunchArg{LaunchArg::workspace, 0, 0};
  args[ConvolutionArg::kWorkspace] = {LaunchArg::workspace, 0, fused ? Expr(0) : call.finishing->bytes()};
  set(ConvolutionArg::kDtype, static_cast<int64_t>(x.dtype));
  set(ConvolutionArg::kOutputDtype, static_cast<int64_t>(x.dtype));
  set(ConvolutionArg::kTf32, problem.tf32);
  set(ConvolutionArg::kSpatial, std::max(2, a.spatial));
  const std::array<Expr, 5> in = five(x.dims, 1), out = five(y.dims, 1);
  set_all(ConvolutionArg::kXDims, in);
  set_all(ConvolutionArg::kXStrides, strides_of(x));
  set(ConvolutionArg::kXAlignment, alignment_of(x));
  set(ConvolutionArg::kFilters, problem.inputs[1].constant->dims()[0]);
  set(ConvolutionArg::kChannels, problem.inputs[1].constant->dims()[1]);
  set_all(ConvolutionArg::kTaps, a.kernel);
  set_all(ConvolutionArg::kYExtents, std::array<Expr, 3>{out[2], out[3], out[4]});
  set_all(ConvolutionArg::kYStrides, strides_of(fused ? y : call.finishing->staged()));
  set(ConvolutionArg::kYAlignment, fused ? alignment_of(y) : 16);
  set_all(ConvolutionArg::kStrides, a.stride);
  set_all(ConvolutionArg::kDilations, a.dilation);
  set_all(ConvolutionArg::kPadBegin, a.pad);
  for (size_t d = 0; d < 3; ++d) set(ConvolutionArg::kPadEnd + d, pad_end(a, d, in[2 + d], out[2 + d]));
  if (fused) add_stages(*call.stages, problem, args);
  return args;
}

double predict(const Problem& problem, const Call& call) {
  const ConvShape& a = call.attributes;
  gemm::Extent e = gemm::extent_of(problem);
  e.operands = 0;
  e.m = conv::opt_pixels(problem.outputs[0]);
  e.n = problem.outputs[0].opt_dims[1] / a.groups;
  e.taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  e.k = problem.inputs[1].constant->dims()[1] * e.taps;
  e.batch = a.groups;
  // Our own tiles reach nine tenths of the library's speed where they do well.
  return 0.9 * gemm::configs(e).front().predicted_us;
}

// Engines for one way to run the region.
struct Way {
  bool fused;
  std::vector<convolution::CudnnEngine> engines;
};

struct Engines {
  Call call;
  int64_t version = 0;  // of the library whose engines these are; 0 where it chooses when the plan is loaded
  std::vector<Way> ways;
};

std::vector<Config> configs(const Problem& problem, const Engines& all) {
  std::vector<Config> configs;
  for (const auto& [fused, engines] : all.ways) {
    double us = predict(problem, all.call) + (fused ? 0 : all.call.finishing->predicted_us());
    for (const convolution::CudnnEngine& engine : engines) {
      configs.push_back({.text = engine.text + (fused ? "" : " + pointwise"),
                         .predicted_us = us,
                         .choice = ConvolutionChoice{fused, all.version, engine}});
      us *= 1.001;  // they come best first
    }
  }
  return configs;
}

Result<Emission> emit(const Problem& problem, const Engines& all, const Config& config) {
  const auto& [fused, version, engine] = config.as<ConvolutionChoice>();
  const Tensor& weights = *problem.inputs[1].constant;
  const int64_t filters = weights.dims()[0], channels = weights.dims()[1], taps = weights.volume() / filters / channels;
  LATHE_ASSIGN(Packed rows, conv::pack_weights(Known{weights, nullptr}, channels, 1));
  Emission emission = with_weights(reshaped(std::move(rows), {filters, taps, channels}));
  emission.kernel = "cudnn.convolution";
  add_operand_inputs(problem, emission);
  Launch& launch = emission.launches.emplace_back().launch;
  launch.library = kCudnnName;
  launch.entry = kConvolutionEntry;
  launch.args = args_of(problem, all.call, fused);
  if (version != 0) {
    launch.args[ConvolutionArg::kVersion] = number_arg(version);
    launch.args[ConvolutionArg::kEngine] = number_arg(engine.index);
    launch.args[ConvolutionArg::kNumKnobs] = number_arg(static_cast<int64_t>(engine.knobs.size()));
    for (size_t i = 0; i < engine.knobs.size(); ++i)
      launch.args[ConvolutionArg::kKnobs + i] = number_arg(engine.knobs[i]);
  }
  if (!fused) LATHE_TRY(all.call.finishing->add(kFirstOperand, emission));
  return emission;
}

}  // namespace

Matched CudnnTactic::match(const Problem& problem) const {
  if (auto reason = unsupported_feature(problem, {})) return lathe::refuse(*std::move(reason));
  Call call;
  if (auto reason = describe(problem, call)) return lathe::refuse(*std::move(reason));
  if (!missing_.empty()) return lathe::refuse(missing_);
  if (!handle_) {
    std::vector<Way> ways = {{call.stages.has_value(), {{0, {}, "chosen when loaded"}}}};
    return match_form(problem, Engines{std::move(call), 0, std::move(ways)}, configs, emit);
  }
  const auto ask = [&](const convolution::Values& values) -> Result<std::vector<convolution::CudnnEngine>> {
    LATHE_ASSIGN(std::vector<convolution::CudnnEngine> found, convolution::find_engines(*handle_, values, kEngines));
    std::erase_if(found, [](const auto& engine) { return engine.knobs.size() > convolution::kMaxKnobs; });
    return found;
  };
  std::vector<Way> ways;
  std::string refusal = call.finishing->refusal().value_or("the library has no engine");
  for (const bool fused : {true, false}) {
    if (fused ? !call.stages : call.finishing->refusal().has_value()) continue;
    auto found = answers_.find(args_of(problem, call, fused), problem.symbols, ask);
    if (!found && ways.empty()) return lathe::refuse(found.error().message);
    if (!found || found->empty()) continue;
    ways.push_back({fused, *std::move(found)});
    if (fused && call.stages->empty()) break;  // there is nothing to do in a launch of its own
  }
  if (ways.empty()) return lathe::refuse(std::move(refusal));
  return match_form(problem,
                    Engines{std::move(call), static_cast<int64_t>(handle_->library().version), std::move(ways)},
                    configs, emit);
}

}  // namespace lathe::cuda
