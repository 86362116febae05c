// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/libraries/cublaslt_tactic.h"

#include <algorithm>
#include <cstring>

#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using matmul::MatmulArg;

constexpr int kAlgorithms = 5;  // that are timed

// The step's inputs.
constexpr uint32_t kInputA = 0, kInputB = 1;
constexpr size_t kFirstOperand = 2;

// A product as the library is asked for it.
struct Call {
  Product p;
  Expr batch = 1, distance_a, distance_b;
  bool fused = false;                    // the library writes the region's result, not sums for a pointwise launch
  std::unique_ptr<Finishing> finishing;  // that launch
  int64_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::optional<size_t> bias;  // which of the operands
  Expr pitch_c, distance_c;
  int64_t version = 0;  // of the library that the algorithms are of; 0 = it chooses when the engine is loaded
  std::vector<matmul::CublasLtAlgorithm> algorithms;
};

// Whether the library's epilogues have the program: a bias, then an activation, both optional.
bool match_epilogue(const Problem& problem, Call& call) {
  const auto chain = chain_of(problem, problem.outputs[0].dims.size() - 1);
  if (!chain) return false;
  int64_t activation = 0;
  for (const auto& [instruction, operand] : *chain) {
    if (activation != 0) return false;
    if (instruction->op == Opcode::add && operand && !call.bias &&
        problem.operands[*operand].dtype == problem.outputs[0].dtype) {
      call.bias = operand;
    } else if (instruction->op == Opcode::relu || instruction->op == Opcode::gelu_tanh) {
      activation = instruction->op == Opcode::relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_GELU;
    } else {
      return false;
    }
  }
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
  if (auto reason = gemm::describe(problem, call.p)) return reason;
  const Product& p = call.p;
  if (p.a.has_several_strides()) return "collapsed columns";
  const DType dtype = problem.inputs[0].dtype;
  if (!is_short_float(dtype)) return fmt::format("{} is none of f32, f16 and bf16", name_of(dtype));
  if (problem.inputs[1].dtype != dtype) return "the operands differ in type";
  if ((p.a.pitch == Expr(0) && p.m != Expr(1) && p.k != Expr(1)) ||
      (p.b.pitch == Expr(0) && p.n != Expr(1) && p.k != Expr(1)))
    return "an operand repeats its rows";
  if (!join(p.batch, p.a.batch_strides, 0, p.batch.size(), call.distance_a) ||
      !join(p.batch, p.b.batch_strides, 0, p.batch.size(), call.distance_b))
    return "the matrices of an operand do not lie at one distance";
  call.batch = volume(p.batch);
  call.fused = problem.outputs[0].reassociation.empty() && match_epilogue(p.problem, call) && place_output(call);
  if (call.fused) return std::nullopt;
  call.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  call.bias.reset();
  call.pitch_c = p.n;
  call.distance_c = p.m * p.n;
  call.finishing = std::make_unique<Finishing>(p.problem);  // f32, which the program computes in
  return call.finishing->refusal();
}

// Without an algorithm.
std::vector<LaunchArg> args_of(const Problem& problem, const Call& call) {
  const Product& p = call.p;
  std::vector<LaunchArg> args(matmul::kNumArgs);
  const auto set = [&](MatmulArg arg, const Expr& value) { args[arg] = number_arg(value); };
  args[MatmulArg::kA] = {LaunchArg::input, kInputA, {}};
  args[MatmulArg::kB] = {LaunchArg::input, kInputB, {}};
  args[MatmulArg::kC] = call.fused ? LaunchArg{LaunchArg::output, 0, {}} : LaunchArg{LaunchArg::workspace, 0, 0};
  if (call.bias) args[MatmulArg::kBias] = {LaunchArg::input, static_cast<uint32_t>(kFirstOperand + *call.bias), {}};
  args[MatmulArg::kWorkspace] = {LaunchArg::workspace, 0, call.fused ? Expr(0) : call.finishing->bytes()};
  const DType dtype = problem.inputs[0].dtype, output = call.fused ? problem.outputs[0].dtype : DType::f32;
  set(MatmulArg::kDtype, static_cast<int64_t>(dtype));
  set(MatmulArg::kOutputDtype, static_cast<int64_t>(output));
  set(MatmulArg::kTf32, problem.tf32);
  set(MatmulArg::kEpilogue, call.epilogue);
  set(MatmulArg::kM, p.m), set(MatmulArg::kN, p.n), set(MatmulArg::kK, p.k), set(MatmulArg::kBatch, call.batch);
  set(MatmulArg::kMnMajorA, p.a.major == gemm::Major::mn), set(MatmulArg::kPitchA, p.a.pitch),
      set(MatmulArg::kDistanceA, call.distance_a);
  set(MatmulArg::kMnMajorB, p.b.major == gemm::Major::mn), set(MatmulArg::kPitchB, p.b.pitch),
      set(MatmulArg::kDistanceB, call.distance_b);
  set(MatmulArg::kPitchC, call.pitch_c), set(MatmulArg::kDistanceC, call.distance_c);
  set(MatmulArg::kAlignmentA, alignment_of(problem.inputs[0]));
  set(MatmulArg::kAlignmentB, p.weights ? 16 : alignment_of(problem.inputs[1]));
  set(MatmulArg::kAlignmentC, call.fused ? alignment_of(problem.outputs[0]) : 16);
  return args;
}

std::vector<Config> configs(const Problem& problem, const Call& call) {
  // Our own tiles reach nine tenths of the library's speed where they do well.
  double us = 0.9 * gemm::configs(gemm::extent_of(problem, call.p)).front().predicted_us;
  if (!call.fused) us += call.finishing->predicted_us();
  const std::string way = call.fused ? "" : " + pointwise";
  if (call.version == 0) return {{.text = "chosen when loaded" + way, .predicted_us = us, .choice = MatmulChoice()}};
  std::vector<Config> configs;
  for (const matmul::CublasLtAlgorithm& algorithm : call.algorithms) {
    configs.push_back(
        {.text = algorithm.text + way, .predicted_us = us, .choice = MatmulChoice{call.version, algorithm.data}});
    us *= 1.001;  // they come best first
  }
  return configs;
}

Result<Emission> emit(const Problem& problem, const Call& call, const Config& config) {
  const auto& choice = config.as<MatmulChoice>();
  Emission emission;
  emission.kernel = "cublaslt.matmul";
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}, {StepInput::input, 1}};
  if (call.p.weights) {
    emission.inputs[kInputB] = {StepInput::packed, 0};
    LATHE_ASSIGN(emission.packed.emplace_back(), gemm::pack_weights(problem));
  }
  add_operand_inputs(problem, emission);
  Launch& launch = emission.launches.emplace_back().launch;
  launch.library = kCublasLtName;
  launch.entry = kMatmulEntry;
  launch.args = args_of(problem, call);
  if (choice.version != 0) {
    launch.args[MatmulArg::kVersion] = number_arg(choice.version);
    for (size_t i = 0; i < std::size(choice.algorithm.data); ++i)
      launch.args[MatmulArg::kAlgorithm + i] = number_arg(static_cast<int64_t>(choice.algorithm.data[i]));
  }
  if (!call.fused) LATHE_TRY(call.finishing->add(kFirstOperand, emission));
  return emission;
}

}  // namespace

Matched CublasLtTactic::match(const Problem& problem) const {
  const Features supported{.reassociated_result = true, .reassociated_inputs = 3};
  if (auto reason = unsupported_feature(problem, supported)) return lathe::refuse(*std::move(reason));
  Call call;
  if (auto reason = describe(problem, call)) return lathe::refuse(*std::move(reason));
  if (!missing_.empty()) return lathe::refuse(missing_);
  if (!handle_) return match_form(problem, std::move(call), configs, emit);
  const auto ask = [&](const matmul::Values& values) { return matmul::find_algorithms(*handle_, values, kAlgorithms); };
  Result<std::vector<matmul::CublasLtAlgorithm>> found = answers_.find(args_of(problem, call), problem.symbols, ask);
  if (!found) return lathe::refuse(found.error().message);
  if (found->empty()) return lathe::refuse("the library has no algorithm");
  call.version = handle_->library().version;
  call.algorithms = *std::move(found);
  return match_form(problem, std::move(call), configs, emit);
}

}  // namespace lathe::cuda
