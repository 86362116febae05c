// SPDX-License-Identifier: Apache-2.0
// Elements named by indices: kernel "gather".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gather/gather.h"

namespace lathe::cpu {
namespace {

class GatherTactic final : public Tactic {
 public:
  std::string_view name() const override { return "gather"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::gather) && !problem.is(OpKind::gather_elements)) return "not a gather";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem&) const override { return {Config{}}; }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    const bool whole = problem.is(OpKind::gather);
    const int64_t axis = whole ? problem.attrs<GatherAttrs>().axis : problem.attrs<GatherElementsAttrs>().axis;
    Emission emission;
    emission.kernel = "gather";
    emission.params = {static_cast<int64_t>(whole ? GatherMode::gather : GatherMode::elements),
                       axis < 0 ? axis + problem.inputs[0].rank() : axis};
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
