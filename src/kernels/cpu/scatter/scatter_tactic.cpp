// SPDX-License-Identifier: Apache-2.0
// Updates at places that indices name: kernel "scatter".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/scatter/scatter.h"

namespace lathe::cpu {
namespace {

int64_t number_of(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::none:
      return 0;
    case ScatterReduction::add:
      return 1;
    case ScatterReduction::mul:
      return 2;
    case ScatterReduction::max:
      return 3;
    case ScatterReduction::min:
      break;
  }
  return 4;
}

class ScatterTactic final : public Tactic {
 public:
  std::string_view name() const override { return "scatter"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::scatter_elements) && !problem.is(OpKind::scatter_nd)) return "not a scatter";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "scatter";
    if (problem.is(OpKind::scatter_elements)) {
      const auto& attrs = problem.attrs<ScatterElementsAttrs>();
      emission.params = {static_cast<int64_t>(ScatterMode::elements),
                         attrs.axis < 0 ? attrs.axis + problem.inputs[0].rank() : attrs.axis,
                         number_of(attrs.reduction)};
    } else {
      emission.params = {static_cast<int64_t>(ScatterMode::tuples), 0,
                         number_of(problem.attrs<ScatterNdAttrs>().reduction)};
    }
    for (size_t i = 0; i < 3; ++i) emission.inputs.push_back({StepInput::input, i});
    return emission;
  }
};

}  // namespace

const Tactic& scatter_tactic() {
  static const ScatterTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
