// SPDX-License-Identifier: Apache-2.0
// Reductions over known axes: kernel "reduce".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/reduce/reduce.h"
#include "ops/rules.h"

namespace lathe::cpu {
namespace {

Reduction kernel_operation(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return Reduction::sum;
    case ReduceOp::prod:
      return Reduction::product;
    case ReduceOp::max:
      return Reduction::max;
    case ReduceOp::min:
      return Reduction::min;
    case ReduceOp::mean:
      return Reduction::mean;
    case ReduceOp::l1:
      return Reduction::l1;
    case ReduceOp::l2:
      return Reduction::l2;
    case ReduceOp::log_sum:
      return Reduction::log_sum;
    case ReduceOp::log_sum_exp:
      return Reduction::log_sum_exp;
    case ReduceOp::sum_square:
      break;
  }
  return Reduction::sum_squares;
}

class ReduceTactic final : public Tactic {
 public:
  std::string_view name() const override { return "reduce"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::reduce)) return "not a reduction";
    if (problem.inputs[0].dtype != DType::f32) return fmt::format("its input is {}", name_of(problem.inputs[0].dtype));
    if (problem.inputs[0].rank() == 0) return "a scalar";
    if (problem.inputs.size() > 1 && !problem.inputs[1].omitted && !problem.inputs[1].constant)
      return "its axes are not constant";
    if (!axes_of(problem)) return "its axes leave the input as it is";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem&) const override { return {Config{}}; }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "reduce";
    emission.params = {static_cast<int64_t>(kernel_operation(problem.attrs<ReduceAttrs>().op)), *axes_of(problem)};
    emission.inputs = {{StepInput::input, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    return emission;
  }

 private:
  // A bit set; nothing when there is nothing to reduce.
  static std::optional<int64_t> axes_of(const Problem& problem) {
    const auto& attrs = problem.attrs<ReduceAttrs>();
    Ints axes = attrs.axes;
    if (problem.inputs.size() > 1 && problem.inputs[1].constant) {
      axes.clear();
      for (int64_t i = 0; i < problem.inputs[1].constant->volume(); ++i)
        axes.push_back(problem.inputs[1].constant->at(i));
    }
    const int64_t rank = problem.inputs[0].rank();
    if (axes.empty() && attrs.noop_with_empty_axes) return std::nullopt;
    int64_t set = axes.empty() ? (int64_t{1} << rank) - 1 : 0;
    for (int64_t axis : axes) set |= int64_t{1} << (axis < 0 ? axis + rank : axis);
    return set;
  }
};

}  // namespace

const Tactic& reduce_tactic() {
  static const ReduceTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
