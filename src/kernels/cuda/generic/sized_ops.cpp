// SPDX-License-Identifier: Apache-2.0
// Ops whose results' sizes follow from the contents of small inputs (a shape, pads, scales) that the device computes:
// the host reads those, and the op runs on the device.
#include <algorithm>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/generic/counted_ops.h"

namespace lathe::cuda {

const Tactic& generic_tactic();

namespace {

constexpr OpKind kSized[] = {OpKind::expand, OpKind::fill,    OpKind::range, OpKind::reshape, OpKind::pad,
                             OpKind::resize, OpKind::one_hot, OpKind::slice, OpKind::tile};

// A dimension of an expanded tensor is broadcast where its extent, which only running may tell, is 1: its stride is 0
// then.
Problem with_open_broadcasts(Problem problem) {
  Operand& in = problem.inputs[0];
  for (size_t d = 0; d < in.dims.size(); ++d)
    if (!in.dims[d].is_constant()) in.strides[d] *= min(in.dims[d] - 1, 1);
  return problem;
}

class SizedTactic final : public CountedTactic {
 public:
  std::string_view name() const override { return "generic"; }
  bool takes(const Problem& problem) const override {
    return problem.attributes &&
           std::find(std::begin(kSized), std::end(kSized), problem.attributes->kind()) != std::end(kSized) &&
           !generic_tactic().refuse(problem);
  }
  Result<CountedEmission> emit(const Problem& problem) const override {
    CountedEmission sized;
    sized.by_rule = true;
    LATHE_ASSIGN(sized.write,
                 generic_tactic().emit(problem.is(OpKind::expand) ? with_open_broadcasts(problem) : problem, {}));
    // The step has the op's inputs, in its order: the shape rule reads them, too.
    for (SourceLaunch& each : sized.write.launches)
      for (LaunchArg& arg : each.launch.args)
        if (arg.kind == LaunchArg::input)
          arg.index = static_cast<decltype(arg.index)>(sized.write.inputs[arg.index].index);
    sized.write.inputs.clear();
    for (size_t i = 0; i < problem.inputs.size(); ++i) sized.write.inputs.push_back({StepInput::input, i});
    return sized;
  }
};

}  // namespace

const CountedTactic& sized_tactic() {
  static const SizedTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
