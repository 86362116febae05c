// SPDX-License-Identifier: Apache-2.0
// Positions of the largest or smallest elements along an axis.
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/reduce/reduction.h"

namespace lathe::cuda {
namespace {

std::string_view value_type(DType dtype) {
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) return "float";
  if (dtype == DType::f64) return "double";
  return dtype == DType::u64 ? "uint64" : "int64";
}

Reduction reduction_of(const Problem& problem) {
  const auto& attrs = problem.attrs<ArgReduceAttrs>();
  const Operand& x = problem.inputs[0];
  const std::string_view value = value_type(x.dtype);
  Reduction reduction{IndexSpace(x), "arg_reduce/arg_reduce.cuh",
                      fmt::format("Extreme<{}, {}, {}>", value, attrs.largest, attrs.select_last), 16};
  IndexSpace& space = reduction.space;
  space.reduce(static_cast<size_t>(attrs.axis < 0 ? attrs.axis + x.rank() : attrs.axis));
  attrs.keepdims ? space.add(problem.outputs[0]) : space.add_kept(problem.outputs[0]);
  space.simplify();
  return reduction;
}

class ArgReduceTactic final : public Tactic {
 public:
  std::string_view name() const override { return "arg_reduce"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::arg_reduce)) return "not the position of an extreme";
    if (!problem.program.is_identity()) return "a program behind integers";
    if (problem.inputs[0].rank() == 0) return "a scalar";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override {
    return configs_of(problem.target, reduction_of(problem));
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    return cuda::emit(reduction_of(problem), problem, config);
  }
};

}  // namespace

const Tactic& arg_reduce_tactic() {
  static const ArgReduceTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
