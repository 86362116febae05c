// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax: kernel "softmax".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class SoftmaxTactic final : public Tactic {
 public:
  std::string_view name() const override { return "softmax"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::softmax)) return "not a softmax";
    if (!problem.operands.empty()) return "the epilogue reads other tensors";
    if (problem.inputs[0].rank() == 0) return "a scalar";
    return refuse_non_f32(problem);
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    const auto& attrs = problem.attrs<SoftmaxAttrs>();
    Emission emission;
    emission.kernel = "softmax";
    emission.params = {attrs.axis < 0 ? attrs.axis + problem.inputs[0].rank() : attrs.axis, attrs.log};
    emission.inputs = {{StepInput::input, 0}};
    return emission;
  }
};

}  // namespace

const Tactic& softmax_tactic() {
  static const SoftmaxTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
