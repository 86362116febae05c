// SPDX-License-Identifier: Apache-2.0
// Kernel "topk".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class TopkTactic final : public Tactic {
 public:
  std::string_view name() const override { return "topk"; }
  bool makes_several_results() const override { return true; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::topk)) return "not a selection of the best";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "topk";
    const auto& attrs = problem.attrs<TopkAttrs>();
    emission.params = {attrs.axis < 0 ? attrs.axis + problem.inputs[0].rank() : attrs.axis, attrs.largest ? 1 : 0};
    emission.inputs = {{StepInput::input, 0}};
    return emission;
  }
};

}  // namespace

const Tactic& topk_tactic() {
  static const TopkTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
