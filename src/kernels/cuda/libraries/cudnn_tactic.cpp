// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/libraries/cudnn_tactic.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/conv/conv_attributes_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/libraries/convolution_stages_tactic.h"
#include "kernels/cuda/libraries/staging_tactic.h"

namespace lathe::cuda {
namespace {

using convolution::Arg;

constexpr size_t kEngines = 5;  // that are timed
constexpr size_t kFirstOperand = 2;
constexpr int64_t kFused = 1, kUnfused = 0;  // Config::values[0]

struct Call {
  cpu::ConvAttributes attributes;
  std::optional<std::vector<ConvolutionStage>> stages;  // nullopt: the program is none of the library's
};

bool is_known(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// Sums that a launch of their own finishes. The library writes the type that it reads: as a network does that is run
// layer by layer.
Staged staged_of(const Problem& problem) { return stage(problem, problem.inputs[0].dtype, Layout::channels_last); }

std::optional<std::string> describe(const Problem& problem, Call& call) {
  if (!problem.is(OpKind::convolution)) return "not a convolution";
  if (problem.outputs.size() != 1) return "several outputs";
  const Operand &x = problem.inputs[0], &w = problem.inputs[1], &y = problem.outputs[0];
  if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
  if (!w.constant) return "the weights are not constant";
  if (!is_known(x.dtype) || w.dtype != x.dtype)
    return fmt::format("{} by {} is none of f32, f16 and bf16", name_of(x.dtype), name_of(w.dtype));
  if (w.constant->volume() == 0) return "an empty dimension";
  if (auto reason = cpu::resolve(problem, call.attributes)) return reason;
  if (y.dtype == x.dtype) call.stages = stages_of(problem);
  return call.stages ? std::nullopt : refuse_pointwise(problem, staged_of(problem));
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
Expr pad_end(const cpu::ConvAttributes& a, size_t d, const Expr& in, const Expr& out) {
  const Expr reach = (a.kernel[d] - 1) * a.dilation[d] + 1;
  if (floordiv(in + 2 * a.pad[d] - reach, a.stride[d]) + 1 == out) return a.pad[d];
  return max(Expr(0), (out - 1) * a.stride[d] + reach - in - a.pad[d]);
}

void add_stages(const std::vector<ConvolutionStage>& stages, const Problem& problem, std::vector<LaunchArg>& args) {
  args[Arg::kNumStages] = number_arg(static_cast<int64_t>(stages.size()));
  for (size_t i = 0; i < stages.size(); ++i) {
    LaunchArg* const fields = &args[Arg::kStages + i * convolution::kStageFields];
    fields[convolution::kMode] = number_arg(int64_t{stages[i].mode});
    fields[convolution::kFirstFloat] = float_arg(stages[i].first);
    fields[convolution::kSecondFloat] = float_arg(stages[i].second);
    if (!stages[i].operand) continue;
    fields[convolution::kHasOperand] = number_arg(1);
    fields[convolution::kOperandDtype] = number_arg(static_cast<int64_t>(problem.operands[*stages[i].operand].dtype));
    args[Arg::kOperands + i] = {LaunchArg::input, static_cast<uint32_t>(kFirstOperand + *stages[i].operand), {}};
  }
}

// `engine`: version, engine, number of knobs, knobs; empty where the library chooses when the engine is loaded.
std::vector<LaunchArg> args_of(const Problem& problem, const Call& call, bool fused, std::span<const int64_t> engine) {
  const Operand &x = problem.inputs[0], &y = problem.outputs[0];
  const cpu::ConvAttributes& a = call.attributes;
  const Staged staged = staged_of(problem);
  std::vector<LaunchArg> args(convolution::kNumArgs);
  const auto set = [&](size_t arg, const Expr& value) { args[arg] = number_arg(value); };
  const auto set_all = [&](size_t first, const auto& values) {
    for (size_t i = 0; i < values.size(); ++i) set(first + i, values[i]);
  };
  args[Arg::kX] = {LaunchArg::input, 0, {}};
  args[Arg::kWeights] = {LaunchArg::input, 1, {}};
  args[Arg::kY] = fused ? LaunchArg{LaunchArg::output, 0, {}} : LaunchArg{LaunchArg::workspace, 0, 0};
  args[Arg::kWorkspace] = {LaunchArg::workspace, 0, fused ? Expr(0) : staged.bytes};
  set(Arg::kDtype, static_cast<int64_t>(x.dtype));
  set(Arg::kOutputDtype, static_cast<int64_t>(x.dtype));
  set(Arg::kTf32, problem.tf32);
  set(Arg::kSpatial, std::max(2, a.spatial));
  const std::array<Expr, 5> in = five(x.dims, 1), out = five(y.dims, 1);
  set_all(Arg::kXDims, in);
  set_all(Arg::kXStrides, strides_of(x));
  set(Arg::kXAlignment, alignment_of(x));
  set(Arg::kFilters, problem.inputs[1].constant->dims()[0]);
  set(Arg::kChannels, problem.inputs[1].constant->dims()[1]);
  set_all(Arg::kTaps, a.kernel);
  set_all(Arg::kYExtents, std::array<Expr, 3>{out[2], out[3], out[4]});
  set_all(Arg::kYStrides, strides_of(fused ? y : staged.operand));
  set(Arg::kYAlignment, fused ? alignment_of(y) : 16);
  set_all(Arg::kStrides, a.stride);
  set_all(Arg::kDilations, a.dilation);
  set_all(Arg::kPadBegin, a.pad);
  for (size_t d = 0; d < 3; ++d) set(Arg::kPadEnd + d, pad_end(a, d, in[2 + d], out[2 + d]));
  if (fused) add_stages(*call.stages, problem, args);
  set_all(Arg::kVersion, engine);
  return args;
}

// Dense: filters, taps, channels.
Result<Tensor> pack_weights(const Tensor& weights) {
  const int64_t filters = weights.dims()[0], channels = weights.dims()[1];
  const int64_t taps = weights.volume() / (filters * channels);
  const size_t size = size_of(weights.dtype());
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(weights.dtype(), {filters, taps, channels}));
  const auto* from = static_cast<const std::byte*>(weights.data());
  auto* to = static_cast<std::byte*>(packed.mutable_data());
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t tap = 0; tap < taps; ++tap, from += size)
        std::memcpy(to + static_cast<size_t>((f * taps + tap) * channels + c) * size, from, size);
  return packed;
}

double predict(const Problem& problem, const Call& call) {
  const Dims& y = problem.outputs[0].opt_dims;
  const cpu::ConvAttributes& a = call.attributes;
  gemm::Extent e;
  e.dtype = problem.inputs[0].dtype;
  e.output = problem.outputs[0].dtype;
  e.tensor_core = gemm::has_tensor_core(problem, false);
  e.target = problem.target;
  e.m = y[0];
  for (size_t d = 2; d < y.size(); ++d) e.m *= y[d];
  e.n = y[1] / a.groups;
  e.taps = a.kernel[0] * a.kernel[1] * a.kernel[2];
  e.k = problem.inputs[1].constant->dims()[1] * e.taps;
  e.batch = a.groups;
  // Our own tiles reach nine tenths of the library's speed where they do well.
  return 0.9 * gemm::configs(e).front().predicted_us;
}

}  // namespace

// The library's answers under the shapes that are tuned for.
Result<std::vector<convolution::Engine>> CudnnTactic::engines(const Problem& problem, bool fused) const {
  Call call;
  if (const auto refusal = describe(problem, call)) return fail(ErrorCode::internal, "cudnn: {}", *refusal);
  const std::vector<LaunchArg> args = args_of(problem, call, fused, {});
  convolution::Values values{};
  for (size_t i = convolution::kNumAddresses; i < args.size(); ++i) {
    const std::optional<int64_t> value = args[i].value.evaluate(problem.symbols);
    if (!value) return fail(ErrorCode::shape_unknown, "a size depends on what is known while running only");
    values[i] = *value;
  }
  const std::lock_guard lock(mutex_);
  if (const auto known = asked_.find(values); known != asked_.end()) return known->second;
  LATHE_ASSIGN(std::vector<convolution::Engine> found, convolution::find_engines(*handle_, values, kEngines));
  std::erase_if(found, [](const auto& engine) { return engine.knobs.size() > convolution::kMaxKnobs; });
  return asked_[values] = std::move(found);
}

std::optional<std::string> CudnnTactic::refuse(const Problem& problem) const {
  Call call;
  if (auto reason = describe(problem, call)) return reason;
  if (!missing_.empty()) return missing_;
  if (!handle_) return std::nullopt;
  if (call.stages) {
    const auto found = engines(problem, true);
    if (!found) return found.error().message;
    if (!found->empty()) return std::nullopt;
  }
  if (auto reason = refuse_pointwise(problem, staged_of(problem))) return reason;
  const auto found = engines(problem, false);
  if (!found) return found.error().message;
  return found->empty() ? std::optional("the library has no engine") : std::nullopt;
}

std::vector<Config> CudnnTactic::configs(const Problem& problem) const {
  Call call;
  describe(problem, call);  // refuse() has seen to it that this works
  std::vector<Config> configs;
  for (const bool fused : {true, false}) {
    if (fused ? !call.stages : refuse_pointwise(problem, staged_of(problem)).has_value()) continue;
    const bool plain = fused && call.stages->empty();
    double us = predict(problem, call) + (fused ? 0 : pointwise_us(problem, staged_of(problem)));
    const std::string way = fused ? "" : " + pointwise";
    if (!handle_) return {{"chosen when loaded" + way, {fused ? kFused : kUnfused}, us}};
    const auto found = engines(problem, fused);
    for (const convolution::Engine& engine : found ? *found : std::vector<convolution::Engine>()) {
      Config config{engine.text + way, {fused ? kFused : kUnfused}, us};
      config.values.insert(config.values.end(), {static_cast<int64_t>(handle_->library().version), engine.index,
                                                 static_cast<int64_t>(engine.knobs.size())});
      config.values.insert(config.values.end(), engine.knobs.begin(), engine.knobs.end());
      configs.push_back(std::move(config));
      us *= 1.001;  // they come best first
    }
    if (plain && !configs.empty()) break;
  }
  return configs;
}

Result<Emission> CudnnTactic::emit(const Problem& problem, const Config& config) const {
  Call call;
  if (const auto refusal = describe(problem, call)) return fail(ErrorCode::internal, "cudnn: {}", *refusal);
  const bool fused = config.values[0] == kFused;
  Emission emission;
  emission.kernel = "cudnn.convolution";
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
  LATHE_ASSIGN(emission.packed.emplace_back(), pack_weights(*problem.inputs[1].constant));
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
  SourceLaunch convolution;
  convolution.launch.library = kCudnnName;
  convolution.launch.entry = kConvolutionEntry;
  convolution.launch.args = args_of(problem, call, fused, std::span(config.values).subspan(1));
  emission.launches.push_back(std::move(convolution));
  if (fused) return emission;
  const Staged staged = staged_of(problem);
  emission.workspace = staged.bytes;
  LATHE_TRY(add_pointwise(problem, staged, kFirstOperand, emission));
  return emission;
}

}  // namespace lathe::cuda
