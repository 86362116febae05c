// SPDX-License-Identifier: Apache-2.0
// Reductions over known axes: kernel "reduce".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/reduce/reduction_tactic.h"

namespace lathe::cpu {
namespace {

class ReduceTactic final : public Tactic {
 public:
  std::string_view name() const override { return "reduce"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::reduce)) return "not a reduction";
    if (problem.inputs[0].dtype != DType::f32) return fmt::format("its input is {}", name_of(problem.inputs[0].dtype));
    return refuse_reduction(problem);
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "reduce";
    emission.params = {static_cast<int64_t>(reduction_of(problem.attrs<ReduceAttrs>().op)), *reduced_axes(problem)};
    emission.inputs = {{StepInput::input, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    return emission;
  }
};

}  // namespace

const Tactic& reduce_tactic() {
  static const ReduceTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
