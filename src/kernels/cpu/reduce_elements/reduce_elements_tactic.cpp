// SPDX-License-Identifier: Apache-2.0
// Reductions of elements other than f32: kernel "reduce_elements".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/reduce/reduction_tactic.h"

namespace lathe::cpu {
namespace {

class ReduceElementsTactic final : public Tactic {
 public:
  std::string_view name() const override { return "reduce_elements"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::reduce)) return "not a reduction";
    if (problem.inputs[0].dtype == DType::f32) return "reductions of f32 have a kernel of their own";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return refuse_reduction(problem);
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "reduce_elements";
    emission.params = {static_cast<int64_t>(reduction_of(problem.attrs<ReduceAttrs>().op)), *reduced_axes(problem)};
    emission.inputs = {{StepInput::input, 0}};
    return emission;
  }
};

}  // namespace

const Tactic& reduce_elements_tactic() {
  static const ReduceElementsTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
