// SPDX-License-Identifier: Apache-2.0
// Kernel "cumulative".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class CumulativeTactic final : public Tactic {
 public:
  std::string_view name() const override { return "cumulative"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::cumulative)) return "not a cumulative sum or product";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "cumulative";
    const auto& attrs = problem.attrs<CumulativeAttrs>();
    emission.params = {attrs.op == CumulativeOp::prod ? 1 : 0, attrs.exclusive ? 1 : 0, attrs.reverse ? 1 : 0};
    emission.inputs = {{StepInput::input, 0}, {StepInput::input, 1}};
    return emission;
  }
};

}  // namespace

const Tactic& cumulative_tactic() {
  static const CumulativeTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
