// SPDX-License-Identifier: Apache-2.0
// Elements named by indices: kernel "gather".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gather/gather.h"

namespace lathe::cpu {
namespace {

class GatherTactic final : public Tactic {
 public:
  std::string_view name() const override { return "gather"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::gather) && !problem.is(OpKind::gather_elements) && !problem.is(OpKind::gather_nd))
      return "not a gather";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    const int64_t rank = problem.inputs[0].rank();
    const auto params = [&](GatherMode mode, int64_t axis) {
      return std::vector<int64_t>{static_cast<int64_t>(mode), axis < 0 ? axis + rank : axis};
    };
    Emission emission;
    emission.kernel = "gather";
    if (problem.is(OpKind::gather))
      emission.params = params(GatherMode::gather, problem.attrs<GatherAttrs>().axis);
    else if (problem.is(OpKind::gather_elements))
      emission.params = params(GatherMode::elements, problem.attrs<GatherElementsAttrs>().axis);
    else
      emission.params = params(GatherMode::tuples, problem.attrs<GatherNdAttrs>().batch_dims);
    emission.inputs = {{StepInput::input, 0}, {StepInput::input, 1}};
    return emission;
  }
};

}  // namespace

const Tactic& gather_tactic() {
  static const GatherTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
