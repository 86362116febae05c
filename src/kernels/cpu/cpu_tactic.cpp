// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_tactic.h"

#include <numeric>

#include "kernels/cpu/cost_tactic.h"

namespace lathe::cpu {

#define LATHE_CPU_TACTIC(name)                               \
  Matched match_##name(const Problem& problem);              \
  const Tactic& name##_tactic();                             \
  const Tactic& name##_tactic() {                            \
    static const FunctionTactic tactic(#name, match_##name); \
    return tactic;                                           \
  }
#include "cpu_tactics.inc"
#undef LATHE_CPU_TACTIC

const TacticList& cpu_tactics() {
  static const TacticList list = {
#define LATHE_CPU_TACTIC(name) &name##_tactic(),
#include "cpu_tactics.inc"
#undef LATHE_CPU_TACTIC
  };
  return list;
}

std::optional<std::string> refuse_epilogue(const Problem& problem) {
  return problem.program.is_identity() ? std::nullopt : std::optional<std::string>("this kernel has no epilogue");
}

std::optional<std::string> refuse_non_f32(const Problem& problem, ResultTypes results) {
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    for (const Operand& operand : *list)
      if (!operand.omitted && operand.dtype != DType::f32 &&
          !(results.levels && list == &problem.outputs && is_byte_integer(operand.dtype)))
        return fmt::format("an operand is {}, this kernel computes in f32", name_of(operand.dtype));
  return std::nullopt;
}

std::optional<std::string> refuse_layout(const Operand& operand, std::string_view what) {
  if (operand.rank() >= 3 && operand.strides[1] != Expr(1) && operand.dims[1] != Expr(1))
    return fmt::format("{} is not channels-last", what);
  return std::nullopt;
}

Emission emission_of(const Problem& problem, std::vector<int64_t> params, const std::vector<size_t>& inputs) {
  Emission emission;
  emission.params = std::move(params);
  for (const size_t i : inputs) emission.inputs.push_back({StepInput::input, i});
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
  return emission;
}

Emission emission_with_weights(const Problem& problem, std::vector<int64_t> params, Packed packed) {
  Emission emission = emission_of(problem, std::move(params), {0});
  emission.inputs.insert(emission.inputs.begin() + 1, {StepInput::packed, 0});
  emission.packed.push_back(std::move(packed));
  return emission;
}

Result<Emission> emission_with_weights(const Problem& problem, std::vector<int64_t> params, int64_t floats,
                                       const PackWeights& pack, const PackingOf& packing) {
  const Operand& weights = problem.inputs[1];
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::f32, {floats}));
  pack(weights.weights->as<float>(), {packed.mutable_as<float>(), static_cast<size_t>(floats)});
  if (!packing) return emission_with_weights(problem, std::move(params), std::move(packed));
  WeightsOrder order{packing(), {*weights.weights, weights.derivation}};
  if (!weights.constant) {
    LATHE_ASSIGN(const Tensor repacked, order.packing.apply(*weights.weights));
    LATHE_CHECK(identical(repacked, packed));
  }
  return emission_with_weights(problem, std::move(params), {std::move(packed), std::move(order)});
}

Matched match_root(const Problem& problem, std::vector<int64_t> params, const std::vector<size_t>& inputs,
                   const Features& supported, const Effort& effort) {
  if (auto reason = unsupported_feature(problem, supported)) return refuse(*std::move(reason));
  if (auto reason = refuse_epilogue(problem)) return refuse(*std::move(reason));
  return match_one(emission_of(problem, std::move(params), inputs), predicted_us(problem, effort));
}

std::vector<size_t> all_inputs(const Problem& problem) {
  std::vector<size_t> all(problem.inputs.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace lathe::cpu
