// SPDX-License-Identifier: Apache-2.0
// Regions that compute nothing: kernel "copy".
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class CopyTactic final : public Tactic {
 public:
  std::string_view name() const override { return "copy"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is_copy()) return "not a plain copy";
    if (problem.operands[0].dtype != problem.outputs[0].dtype) return "a copy that converts";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem&) const override { return {Config{}}; }

  Result<Emission> emit(const Problem&, const Config&) const override {
    Emission emission;
    emission.kernel = "copy";
    emission.with_program = false;
    emission.inputs = {{StepInput::operand, 0}};
    return emission;
  }
};

}  // namespace

const Tactic& copy_tactic() {
  static const CopyTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
