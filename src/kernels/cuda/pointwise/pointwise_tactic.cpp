// SPDX-License-Identifier: Apache-2.0
// Pointwise expressions in f32 over 16- and 32-bit floats, small integers and booleans.
#include <algorithm>

#include "kernels/cuda/collapse.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int kMaxWidth = 8;  // elements of a vector: more would take too many registers

bool is_exact_in_f32(DType dtype) { return is_floating(dtype) ? dtype != DType::f64 : size_of(dtype) <= 2; }

// Whether the program's result is an integer of that type already: what quantisation ends with.
bool is_quantized(const Program& program, uint16_t result, DType dtype) {
  if (result < program.num_inputs || size_of(dtype) > 2) return false;
  const Instruction& last = program.code[result - program.num_inputs];
  if (last.op != Opcode::clip) return false;
  const bool is_signed = class_of(dtype) == DTypeClass::signed_int;
  const auto values = static_cast<float>(int64_t{1} << (size_of(dtype) * 8));
  const float low = is_signed ? -values / 2 : 0, high = (is_signed ? values / 2 : values) - 1;
  return last.immediates[0] >= low && last.immediates[1] <= high;
}

// Outputs, then operands, in the same collapsed dims.
std::vector<Operand> collapsed_tensors(const Problem& problem) {
  std::vector<Operand> tensors = problem.outputs;
  for (const Operand& operand : problem.operands) tensors.push_back(broadcast(operand, problem.outputs[0]));
  return collapse(std::move(tensors));
}

// The longest vector that no tensor has to read in more accesses than its alignment asks for.
int shared_width(const std::vector<Operand>& tensors) {
  int longest = 1, shortest = kMaxWidth;
  bool full = true;
  for (const Operand& tensor : tensors) {
    const int last = tensor.rank() - 1;
    if (tensor.strides[static_cast<size_t>(last)] == Expr(0)) continue;
    const int width = unit_dim(tensor) == last ? vector_width(tensor) : 1;
    full &= width * size_of(tensor.dtype) == 16;
    longest = std::max(longest, width);
    shortest = std::min(shortest, width);
  }
  return full ? std::min(longest, kMaxWidth) : shortest;
}

class PointwiseTactic final : public Tactic {
 public:
  std::string_view name() const override { return "pointwise"; }
  bool makes_several_results() const override { return true; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (problem.attributes) return "not a pointwise expression";
    for (const Operand& operand : problem.operands)
      if (!is_exact_in_f32(operand.dtype)) return fmt::format("f32 does not hold every {}", name_of(operand.dtype));
    for (size_t i = 0; i < problem.outputs.size(); ++i) {
      const Operand& output = problem.outputs[i];
      if (output.dims != problem.outputs[0].dims) return "outputs differ in shape";
      if (is_integer(output.dtype) ? !is_quantized(problem.program, problem.program.outputs[i], output.dtype)
                                   : !is_exact_in_f32(output.dtype))
        return fmt::format("{} is no result of f32 arithmetic", name_of(output.dtype));
    }
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override {
    double bytes = 0;
    for (const auto* list : {&problem.operands, &problem.outputs})
      for (const Operand& operand : *list) bytes += opt_bytes(operand);
    std::vector<Config> configs;
    // A thread with more than one vector has more loads in flight, which pays when there is work for all threads.
    constexpr double kSmallBytes = 2e6, kLargeBytes = 32e6;
    for (const int64_t unroll : {1, 2, 4}) {
      if (unroll > 1 && bytes < kSmallBytes) break;
      const double factor = (unroll > 1) == (bytes > kLargeBytes) ? 1.0 : 1.05;
      configs.push_back({fmt::format("unroll={}", unroll), {unroll}, factor * memory_bound_us(bytes)});
    }
    std::stable_sort(configs.begin(), configs.end(),
                     [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const std::vector<Operand> tensors = collapsed_tensors(problem);
    const size_t num_outputs = problem.outputs.size();
    Problem collapsed;
    collapsed.program = problem.program;
    collapsed.outputs.assign(tensors.begin(), tensors.begin() + static_cast<ptrdiff_t>(num_outputs));
    collapsed.operands.assign(tensors.begin() + static_cast<ptrdiff_t>(num_outputs), tensors.end());

    Emission emission;
    Source source("pointwise/pointwise.cuh");
    source.fusion(collapsed, 0);
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    std::string outputs;
    for (size_t i = 0; i < num_outputs; ++i) {
      source.output(i, collapsed.outputs[i], fmt::format("Out{}", i));
      outputs += fmt::format(", Out{}_", i);
    }
    const int width = shared_width(tensors);
    const int64_t unroll = config.values.empty() ? 1 : config.values[0];
    const Operand& space = collapsed.outputs[0];
    Expr vectors = ceildiv(space.dims.back(), width);
    for (int d = 0; d + 1 < space.rank(); ++d) vectors *= space.dims[static_cast<size_t>(d)];
    const std::string call = fmt::format("pointwise<{}, {}, {}>(fusion_, Out0_{});", width, unroll,
                                         fits_32_bits(tensors) ? "unsigned" : "unsigned long", outputs);
    emission.launches.push_back(
        source.finish(call, {ceildiv(vectors, static_cast<int64_t>(kThreads) * unroll), 1, 1}, kThreads, 0));
    return emission;
  }
};

}  // namespace

const Tactic& pointwise_tactic() {
  static const PointwiseTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
