// SPDX-License-Identifier: Apache-2.0
// Kernel "range".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class RangeTactic final : public Tactic {
 public:
  std::string_view name() const override { return "range"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::range)) return "not a range";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem&, const Config&) const override {
    Emission emission;
    emission.kernel = "range";
    emission.inputs = {{StepInput::input, 0}, {StepInput::input, 2}};
    return emission;
  }
};

}  // namespace

const Tactic& range_tactic() {
  static const RangeTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
