// SPDX-License-Identifier: Apache-2.0
// Kernel "one_hot".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class OneHotTactic final : public Tactic {
 public:
  std::string_view name() const override { return "one_hot"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::one_hot)) return "not a one-hot encoding";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "one_hot";
    const int64_t axis = problem.attrs<OneHotAttrs>().axis;
    emission.params = {axis < 0 ? axis + problem.outputs[0].rank() : axis};
    emission.inputs = {{StepInput::input, 0}, {StepInput::input, 2}};
    return emission;
  }
};

}  // namespace

const Tactic& one_hot_tactic() {
  static const OneHotTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
