// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/libraries/cublaslt_tactic.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/libraries/staging_tactic.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using matmul::Arg;

constexpr int kAlgorithms = 5;  // that are timed

// The step's inputs.
constexpr uint32_t kInputA = 0, kInputB = 1;
constexpr size_t kFirstOperand = 2;

// A product as the library is asked for it.
struct Call {
  Product p;
  Expr batch = 1, distance_a, distance_b;
  bool fused = false;  // the library writes the region's result, not sums for a pointwise launch
  int64_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::optional<size_t> bias;  // which of the operands
  Expr pitch_c, distance_c;
};

bool is_bias(const Operand& given, const Operand& output) {
  const Operand operand = broadcast(given, output);
  const size_t last = output.dims.size() - 1;
  for (size_t d = 0; d < last; ++d)
    if (operand.strides[d] != Expr(0) && output.dims[d] != Expr(1)) return false;
  // Only constants surely lie apart from the result.
  return given.constant && given.dtype == output.dtype &&
         (operand.strides[last] == Expr(1) || output.dims[last] == Expr(1));
}

// Whether the library's epilogues have the program: a bias, then an activation, both optional.
bool match_epilogue(const Problem& problem, Call& call) {
  const Program& program = problem.program;
  if (program.outputs.empty()) return true;
  uint16_t value = 0;
  int64_t activation = 0;
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Instruction& each = program.code[i];
    const uint16_t first = each.operands[0], second = each.operands[1];
    if (each.op == Opcode::add && !call.bias && activation == 0 && (first == value) != (second == value)) {
      const uint16_t other = first == value ? second : first;
      if (other == 0 || other >= program.num_inputs) return false;
      if (!is_bias(problem.operands[other - 1u], problem.outputs[0])) return false;
      call.bias = other - 1u;
    } else if ((each.op == Opcode::relu || each.op == Opcode::gelu_tanh) && activation == 0 && first == value) {
      activation = each.op == Opcode::relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_GELU;
    } else {
      return false;
    }
    value = static_cast<uint16_t>(program.num_inputs + i);
  }
  if (program.outputs[0] != value) return false;
  call.epilogue = activation | (call.bias ? CUBLASLT_EPILOGUE_BIAS : 0);
  if (call.epilogue == 0) call.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  return true;
}

// Dimensions [begin, end) as one: its stride, 0 where all have extent 1. False where they do not continue each other.
bool join(const Shape& dims, const Shape& strides, size_t begin, size_t end, Expr& stride) {
  Expr extent = 1;
  stride = 0;
  bool first = true;
  for (size_t d = end; d-- > begin;) {
    if (dims[d] == Expr(1)) continue;
    if (!first && strides[d] != stride * extent) return false;
    if (first) stride = strides[d];
    first = false;
    extent *= dims[d];
  }
  return true;
}

// Whether the library can write the output where it belongs.
bool place_output(Call& call) {
  const Operand& out = call.p.problem.outputs[0];
  const size_t last = out.dims.size() - 1, batch = call.p.batch.size();
  if (out.dtype != DType::f32 && out.dtype != call.p.problem.inputs[0].dtype) return false;
  if (out.dims[last] != Expr(1) && out.strides[last] != Expr(1)) return false;
  return join(out.dims, out.strides, batch, last, call.pitch_c) &&
         join(out.dims, out.strides, 0, batch, call.distance_c);
}

std::optional<std::string> describe(const Problem& problem, Call& call) {
  if (problem.outputs.size() != 1) return "several outputs";
  if (auto reason = gemm::describe(problem, call.p)) return reason;
  const Product& p = call.p;
  if (p.a.has_parts()) return "joined columns";
  const DType dtype = problem.inputs[0].dtype;
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
    return fmt::format("{} is none of f32, f16 and bf16", name_of(dtype));
  if (problem.inputs[1].dtype != dtype) return "the operands differ in type";
  if ((p.a.pitch == Expr(0) && p.m != Expr(1) && p.k != Expr(1)) ||
      (p.b.pitch == Expr(0) && p.n != Expr(1) && p.k != Expr(1)))
    return "an operand repeats its rows";
  if (!join(p.batch, p.a.batch_strides, 0, p.batch.size(), call.distance_a) ||
      !join(p.batch, p.b.batch_strides, 0, p.batch.size(), call.distance_b))
    return "the matrices of an operand do not lie at one distance";
  call.batch = volume(p.batch);
  call.fused = problem.outputs[0].parts.empty() && match_epilogue(p.problem, call) && place_output(call);
  if (call.fused) return std::nullopt;
  call.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  call.bias.reset();
  call.pitch_c = p.n;
  call.distance_c = p.m * p.n;
  return refuse_pointwise(p.problem, stage(p.problem));  // f32, which the program computes in
}

std::vector<LaunchArg> args_of(const Problem& problem, const Call& call, const Config& config) {
  const Product& p = call.p;
  std::vector<LaunchArg> args(matmul::kNumArgs);
  const Staged staged = stage(p.problem);
  const auto set = [&](Arg arg, const Expr& value) { args[arg] = number_arg(value); };
  args[Arg::kA] = {LaunchArg::input, kInputA, {}};
  args[Arg::kB] = {LaunchArg::input, kInputB, {}};
  args[Arg::kC] = call.fused ? LaunchArg{LaunchArg::output, 0, {}} : LaunchArg{LaunchArg::workspace, 0, 0};
  if (call.bias) args[Arg::kBias] = {LaunchArg::input, static_cast<uint32_t>(kFirstOperand + *call.bias), {}};
  args[Arg::kWorkspace] = {LaunchArg::workspace, 0, call.fused ? Expr(0) : staged.bytes};
  const DType dtype = problem.inputs[0].dtype, output = call.fused ? problem.outputs[0].dtype : DType::f32;
  set(Arg::kDtype, static_cast<int64_t>(dtype));
  set(Arg::kOutputDtype, static_cast<int64_t>(output));
  set(Arg::kTf32, problem.tf32);
  set(Arg::kEpilogue, call.epilogue);
  set(Arg::kM, p.m), set(Arg::kN, p.n), set(Arg::kK, p.k), set(Arg::kBatch, call.batch);
  set(Arg::kAcrossA, p.a.across), set(Arg::kPitchA, p.a.pitch), set(Arg::kDistanceA, call.distance_a);
  set(Arg::kAcrossB, p.b.across), set(Arg::kPitchB, p.b.pitch), set(Arg::kDistanceB, call.distance_b);
  set(Arg::kPitchC, call.pitch_c), set(Arg::kDistanceC, call.distance_c);
  set(Arg::kAlignmentA, alignment_of(problem.inputs[0]));
  set(Arg::kAlignmentB, p.weights ? 16 : alignment_of(problem.inputs[1]));
  set(Arg::kAlignmentC, call.fused ? alignment_of(problem.outputs[0]) : 16);
  for (size_t i = 0; i < config.values.size(); ++i) args[Arg::kVersion + i] = number_arg(config.values[i]);
  return args;
}

}  // namespace

// The library's answers under the shapes that are tuned for.
Result<std::vector<matmul::Algorithm>> CublasLtTactic::algorithms(const Problem& problem) const {
  Call call;
  if (const auto refusal = describe(problem, call)) return fail(ErrorCode::internal, "cublaslt: {}", *refusal);
  const std::vector<LaunchArg> args = args_of(problem, call, {});
  matmul::Values values{};
  for (size_t i = matmul::kNumAddresses; i < args.size(); ++i) {
    const std::optional<int64_t> value = args[i].value.evaluate(problem.symbols);
    if (!value) return fail(ErrorCode::shape_unknown, "a size depends on what is known while running only");
    values[i] = *value;
  }
  const std::lock_guard lock(mutex_);
  if (const auto known = asked_.find(values); known != asked_.end()) return known->second;
  LATHE_ASSIGN(std::vector<matmul::Algorithm> found, matmul::find_algorithms(*handle_, values, kAlgorithms));
  return asked_[values] = std::move(found);
}

std::optional<std::string> CublasLtTactic::refuse(const Problem& problem) const {
  Call call;
  if (auto reason = describe(problem, call)) return reason;
  if (!missing_.empty()) return missing_;
  if (!handle_) return std::nullopt;
  const auto found = algorithms(problem);
  if (!found) return found.error().message;
  return found->empty() ? std::optional("the library has no algorithm") : std::nullopt;
}

std::vector<Config> CublasLtTactic::configs(const Problem& problem) const {
  Call call;
  describe(problem, call);  // refuse() has seen to it that this works
  // Our own tiles reach nine tenths of the library's speed where they do well.
  double us = 0.9 * gemm::configs(gemm::extent_of(problem, call.p)).front().predicted_us;
  if (!call.fused) us += pointwise_us(call.p.problem, stage(call.p.problem));
  const std::string way = call.fused ? "" : " + pointwise";
  if (!handle_) return {{"chosen when loaded" + way, {}, us}};
  std::vector<Config> configs;
  const auto found = algorithms(problem);
  if (!found) return configs;
  for (const matmul::Algorithm& algorithm : *found) {
    Config config{algorithm.text + way, {static_cast<int64_t>(handle_->library().version)}, us};
    for (const uint64_t word : algorithm.data.data) config.values.push_back(static_cast<int64_t>(word));
    configs.push_back(std::move(config));
    us *= 1.001;  // they come best first
  }
  return configs;
}

Result<Emission> CublasLtTactic::emit(const Problem& problem, const Config& config) const {
  Call call;
  if (const auto refusal = describe(problem, call)) return fail(ErrorCode::internal, "cublaslt: {}", *refusal);
  Emission emission;
  emission.kernel = "cublaslt.matmul";
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}, {StepInput::input, 1}};
  if (call.p.weights) {
    emission.inputs[kInputB] = {StepInput::packed, 0};
    LATHE_ASSIGN(emission.packed.emplace_back(), gemm::pack_weights(problem));
  }
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
  SourceLaunch product;
  product.launch.library = kCublasLtName;
  product.launch.entry = kMatmulEntry;
  product.launch.args = args_of(problem, call, config);
  emission.launches.push_back(std::move(product));
  if (call.fused) return emission;
  const Staged staged = stage(call.p.problem);
  emission.workspace = staged.bytes;
  LATHE_TRY(add_pointwise(call.p.problem, staged, kFirstOperand, emission));
  return emission;
}

}  // namespace lathe::cuda
