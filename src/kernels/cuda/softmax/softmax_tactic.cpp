// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over any axis.
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/normalization/normalization.h"
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {
namespace {

Normalization normalization_of(const Problem& problem) {
  const auto& attrs = problem.attrs<SoftmaxAttrs>();
  const Operand& x = problem.inputs[0];
  Normalization normalization{IndexSpace(x), attrs.log ? "Exponentials<true>" : "Exponentials<false>", "", 8};
  IndexSpace& space = normalization.space;
  space.add(problem.outputs[0]);
  for (const Operand& operand : problem.operands) space.add(operand);
  add_prologue_operands(problem, space);
  space.reduce(static_cast<size_t>(attrs.axis < 0 ? attrs.axis + x.rank() : attrs.axis));
  space.simplify();
  return normalization;
}

class SoftmaxTactic final : public Tactic {
 public:
  std::string_view name() const override { return "softmax"; }
  bool takes_prologue(size_t input) const override { return input == 0; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::softmax)) return "not a softmax";
    if (problem.inputs[0].rank() == 0) return "a scalar";
    return refuse_types(problem);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    return configs_of(problem.target, normalization_of(problem));
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    return cuda::emit(normalization_of(problem), problem, config, {{StepInput::input, 0}});
  }
};

}  // namespace

const Tactic& softmax_tactic() {
  static const SoftmaxTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
