// SPDX-License-Identifier: Apache-2.0
// What the null device offers to builds: one kernel, for everything.
#include "tuning/backend.h"

#include "device/null/null_device.h"

namespace lathe::null {
namespace {

Matched match_null(const Problem& problem) {
  if (!problem.inlined.empty()) return refuse("steps before it that its kernel would do");
  Emission emission;
  emission.kernel = "null";
  for (size_t i = 0; i < problem.inputs.size(); ++i)
    if (!problem.inputs[i].omitted) emission.inputs.push_back({StepInput::input, i});
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
  for (size_t i = 0; i < problem.inputs.size(); ++i)
    for (size_t k = 0; k < problem.inputs[i].operands.size(); ++k)
      emission.inputs.push_back({.kind = StepInput::input_operand, .index = i, .of_program = k});
  return match_one(std::move(emission), problem.target.launch_us);
}

class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }

  Result<BackendBuild> prepare(std::string_view, const BackendSettings&) const override {
    static const FunctionTactic tactic("null", match_null);
    BackendBuild build;
    build.target = NullDevice().describe();  // nothing is measured: results of nothing cannot be checked
    build.traits = {.arithmetic = {.integer_products = true},
                    .fuses_narrow_types = true,
                    .fuses_prologues = true,
                    .fuses_movement = true,
                    .narrows_precision = true};
    build.tactics = {&tactic};
    build.timing_key = build.target.name;
    return build;
  }
};

}  // namespace

const Backend& backend();  // families.def
const Backend& backend() {
  static const NullBackend backend;
  return backend;
}

}  // namespace lathe::null
