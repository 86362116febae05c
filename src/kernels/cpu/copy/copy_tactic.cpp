// SPDX-License-Identifier: Apache-2.0
// Regions that compute nothing, and tensors of one number: kernel "copy".
#include <cstring>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class CopyTactic final : public Tactic {
 public:
  std::string_view name() const override { return "copy"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (problem.is(OpKind::fill)) return std::nullopt;
    if (!problem.is_copy()) return "not a plain copy";
    if (problem.operands[0].dtype != problem.outputs[0].dtype) return "a copy that converts";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem&) const override { return {Config{}}; }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "copy";
    emission.with_program = false;
    if (problem.is(OpKind::fill)) {
      const Tensor& value = problem.attrs<FillAttrs>().value;
      uint64_t bits = 0;
      if (value.defined()) std::memcpy(&bits, value.data(), value.bytes());
      emission.params = {static_cast<int64_t>(CopyMode::fill), static_cast<int64_t>(bits)};
      return emission;
    }
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
