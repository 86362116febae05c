// SPDX-License-Identifier: Apache-2.0
// Layer and RMS normalization: kernel "normalization".
#include <bit>

#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class NormalizationTactic final : public Tactic {
 public:
  std::string_view name() const override { return "normalization"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::layer_normalization) && !problem.is(OpKind::rms_normalization))
      return "not a layer or RMS normalization";
    if (problem.inputs[0].rank() == 0) return "a scalar";
    return refuse_non_f32(problem);
  }

  std::vector<Config> configs(const Problem&) const override { return {Config{}}; }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    const bool rms = problem.is(OpKind::rms_normalization);
    const int64_t rank = problem.inputs[0].rank();
    const int64_t given =
        rms ? problem.attrs<RmsNormalizationAttrs>().axis : problem.attrs<LayerNormalizationAttrs>().axis;
    const double epsilon =
        rms ? problem.attrs<RmsNormalizationAttrs>().epsilon : problem.attrs<LayerNormalizationAttrs>().epsilon;
    int64_t axes = 0;
    for (int64_t axis = given < 0 ? given + rank : given; axis < rank; ++axis) axes |= int64_t{1} << axis;
    Emission emission;
    emission.kernel = "normalization";
    emission.params = {rms, axes, std::bit_cast<int32_t>(static_cast<float>(epsilon)), 0, 0};
    emission.inputs = {{StepInput::input, 0}};
    for (size_t i = 1; i < problem.inputs.size(); ++i) {
      if (problem.inputs[i].omitted) continue;
      emission.params[2 + i] = 1;
      emission.inputs.push_back({StepInput::input, i});
    }
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    return emission;
  }
};

}  // namespace

const Tactic& normalization_tactic() {
  static const NormalizationTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
