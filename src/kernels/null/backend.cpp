// SPDX-License-Identifier: Apache-2.0
// What the null device offers to builds: one kernel, for everything.
#include "tuning/backend.h"

#include "device/null/null_device.h"

namespace lathe::null {
namespace {

class NullTactic final : public Tactic {
 public:
  std::string_view name() const override { return "null"; }
  std::optional<std::string> refuse(const Problem&) const override { return std::nullopt; }
  bool makes_several_results() const override { return true; }
  bool takes_prologue(size_t) const override { return true; }
  bool writes_parts() const override { return true; }
  bool reads_parts(size_t) const override { return true; }
  bool reads_padding() const override { return true; }
  std::vector<Config> configs(const Problem& problem) const override { return {{"", {}, problem.target.launch_us}}; }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "null";
    for (size_t i = 0; i < problem.inputs.size(); ++i)
      if (!problem.inputs[i].omitted) emission.inputs.push_back({StepInput::input, i});
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    for (size_t i = 0; i < problem.prologue_operands.size(); ++i) emission.inputs.push_back({StepInput::prologue, i});
    return emission;
  }
};

class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }

  Result<BackendBuild> prepare(std::string_view, const BackendSettings&) const override {
    static const NullTactic tactic;
    BackendBuild build;
    build.target = NullDevice().describe();  // nothing is measured: results of nothing cannot be checked
    build.traits = {.fuses_narrow_types = true,
                    .fuses_prologues = true,
                    .fuses_movement = true,
                    .narrow_floats = true,
                    .integer_products = true,
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
