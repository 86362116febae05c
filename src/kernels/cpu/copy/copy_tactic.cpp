// SPDX-License-Identifier: Apache-2.0
// Regions that compute nothing, tensors of one number, diagonals, and images taken apart into blocks: kernel "copy".
#include <cstring>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

int64_t bits_of(const Tensor& value) {
  int64_t bits = 0;
  std::memcpy(&bits, value.data(), size_of(value.dtype()));
  return bits;
}

int64_t bits_of_one(DType type) {
  return dispatch(type, [](auto zero) {
    const auto one = static_cast<decltype(zero)>(1);
    int64_t bits = 0;
    std::memcpy(&bits, &one, sizeof(one));
    return bits;
  });
}

// Nothing for ops that are not copies.
std::optional<std::vector<int64_t>> params_of(const Problem& problem) {
  const auto record = [](CopyMode mode, int64_t first, int64_t second) {
    return std::vector<int64_t>{static_cast<int64_t>(mode), first, second};
  };
  switch (problem.attributes->kind()) {
    case OpKind::fill: {
      const Tensor& value = problem.attrs<FillAttrs>().value;
      return std::vector<int64_t>{static_cast<int64_t>(CopyMode::fill), value.defined() ? bits_of(value) : 0};
    }
    case OpKind::eye_like: {
      const auto& attrs = problem.attrs<EyeLikeAttrs>();
      return record(CopyMode::eye, bits_of_one(attrs.dtype), attrs.k);
    }
    case OpKind::depth_to_space: {
      const auto& attrs = problem.attrs<DepthToSpaceAttrs>();
      return record(CopyMode::blocks, attrs.block, attrs.mode == DepthToSpaceMode::dcr ? 0 : 1);
    }
    case OpKind::space_to_depth:
      return record(CopyMode::blocks, problem.attrs<SpaceToDepthAttrs>().block, 2);
    default:
      return std::nullopt;
  }
}

class CopyTactic final : public Tactic {
 public:
  std::string_view name() const override { return "copy"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (problem.attributes && params_of(problem))
      return problem.program.is_identity() ? std::nullopt : std::optional<std::string>("this kernel has no epilogue");
    if (!problem.is_copy()) return "not a plain copy";
    if (problem.operands[0].dtype != problem.outputs[0].dtype) return "a copy that converts";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "copy";
    emission.with_program = false;
    if (!problem.is(OpKind::fill)) emission.inputs = {{problem.attributes ? StepInput::input : StepInput::operand, 0}};
    if (problem.attributes) emission.params = *params_of(problem);
    return emission;
  }
};

}  // namespace

const Tactic& copy_tactic() {
  static const CopyTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
