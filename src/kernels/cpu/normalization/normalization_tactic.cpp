// SPDX-License-Identifier: Apache-2.0
// Layer, RMS, instance and group normalization: kernel "normalization".
#include <bit>

#include "device/cpu/kernel.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

// What the kernel needs to know of the op.
struct Kind {
  bool subtract_mean = true;
  int64_t axes = 0;  // of the view with the groups as a dimension
  int64_t groups = 1;
  double epsilon = 0;
  bool by_channel = false;  // scale and bias have one value for each channel
};

int64_t bits_from(int64_t axis, int rank) { return ((int64_t{1} << rank) - 1) & ~((int64_t{1} << axis) - 1); }

std::optional<Kind> kind_of(const Problem& problem) {
  if (!problem.attributes) return std::nullopt;
  const int rank = problem.inputs[0].rank();
  const auto from_axis = [&](int64_t axis) { return bits_from(axis < 0 ? axis + rank : axis, rank); };
  if (problem.is(OpKind::layer_normalization)) {
    const auto& attrs = problem.attrs<LayerNormalizationAttrs>();
    return Kind{true, from_axis(attrs.axis), 1, attrs.epsilon, false};
  }
  if (problem.is(OpKind::rms_normalization)) {
    const auto& attrs = problem.attrs<RmsNormalizationAttrs>();
    return Kind{false, from_axis(attrs.axis), 1, attrs.epsilon, false};
  }
  if (problem.is(OpKind::instance_normalization))
    return Kind{true, bits_from(2, rank), 1, problem.attrs<InstanceNormalizationAttrs>().epsilon, true};
  if (problem.is(OpKind::group_normalization)) {
    const auto& attrs = problem.attrs<GroupNormalizationAttrs>();
    if (attrs.groups == 1) return Kind{true, bits_from(1, rank), 1, attrs.epsilon, true};
    return Kind{true, bits_from(2, rank + 1), attrs.groups, attrs.epsilon, true};
  }
  return std::nullopt;
}

class NormalizationTactic final : public Tactic {
 public:
  std::string_view name() const override { return "normalization"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    const std::optional<Kind> kind = kind_of(problem);
    if (!kind) return "not a normalization";
    if (auto reason = refuse_non_f32(problem)) return reason;
    if (problem.inputs[0].rank() == 0) return "a scalar";
    if (problem.inputs[0].rank() + (kind->groups > 1) > kMaxRank) return "too many dimensions";
    if (kind->by_channel)
      for (size_t i = 1; i < problem.inputs.size(); ++i)
        if (!problem.inputs[i].constant) return "scale or bias is not constant";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    const Kind kind = *kind_of(problem);
    const auto has = [&](size_t i) { return i < problem.inputs.size() && !problem.inputs[i].omitted; };
    Emission emission;
    emission.kernel = "normalization";
    emission.params = {
        !kind.subtract_mean, kind.axes, std::bit_cast<uint32_t>(static_cast<float>(kind.epsilon)), has(1), has(2),
        kind.groups};
    emission.inputs = {{StepInput::input, 0}};
    for (const size_t i : {1, 2}) {
      if (!has(i)) continue;
      if (!kind.by_channel) {
        emission.inputs.push_back({StepInput::input, i});
        continue;
      }
      emission.inputs.push_back({StepInput::packed, emission.packed.size()});
      LATHE_ASSIGN(Tensor column, channel_column(*problem.inputs[i].constant, problem.inputs[0].rank()));
      emission.packed.push_back(std::move(column));
    }
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    return emission;
  }

 private:
  // One value for each channel, in a shape that broadcasts to N C spatial...
  static Result<Tensor> channel_column(const Tensor& values, int rank) {
    Dims dims(static_cast<size_t>(rank) - 1, 1);
    dims[0] = values.volume();
    LATHE_ASSIGN(Tensor column, Tensor::allocate(DType::f32, dims));
    std::copy_n(values.as<float>(), values.volume(), column.mutable_as<float>());
    return column;
  }
};

}  // namespace

const Tactic& normalization_tactic() {
  static const NormalizationTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
