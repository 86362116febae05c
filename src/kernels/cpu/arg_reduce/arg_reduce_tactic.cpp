// SPDX-License-Identifier: Apache-2.0
// Kernel "arg_reduce".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class ArgReduceTactic final : public Tactic {
 public:
  std::string_view name() const override { return "arg_reduce"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::arg_reduce)) return "not a search for the largest or smallest";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "arg_reduce";
    const auto& attrs = problem.attrs<ArgReduceAttrs>();
    emission.params = {attrs.axis < 0 ? attrs.axis + problem.inputs[0].rank() : attrs.axis, attrs.largest ? 1 : 0,
                       attrs.select_last ? 1 : 0};
    emission.inputs = {{StepInput::input, 0}};
    return emission;
  }
};

}  // namespace

const Tactic& arg_reduce_tactic() {
  static const ArgReduceTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
