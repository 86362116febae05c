// SPDX-License-Identifier: Apache-2.0
// Kernel "trilu".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class TriluTactic final : public Tactic {
 public:
  std::string_view name() const override { return "trilu"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::trilu)) return "not a triangle";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "trilu";
    emission.params = {problem.attrs<TriluAttrs>().upper ? 1 : 0};
    emission.inputs = {{StepInput::input, 0}};
    if (problem.inputs.size() > 1 && !problem.inputs[1].omitted) emission.inputs.push_back({StepInput::input, 1});
    return emission;
  }
};

}  // namespace

const Tactic& trilu_tactic() {
  static const TriluTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
