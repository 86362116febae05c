// SPDX-License-Identifier: Apache-2.0
// Ops whose results' sizes follow from the contents of small inputs (a shape, pads, scales) that the device computes:
// the host reads those, and the op runs on the device.
#include <algorithm>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/generic/data_dependent_ops.h"

namespace lathe::cuda {

const Tactic& generic_tactic();

namespace {

constexpr OpKind kSized[] = {OpKind::expand, OpKind::fill,    OpKind::range, OpKind::reshape, OpKind::pad,
                             OpKind::resize, OpKind::one_hot, OpKind::slice, OpKind::tile,    OpKind::col2im};

}  // namespace

DataDependentMatched match_by_rule(const Problem& problem) {
  if (!problem.attributes ||
      std::find(std::begin(kSized), std::end(kSized), problem.attributes->kind()) == std::end(kSized))
    return refuse("no op whose sizes are the contents of small inputs");
  Matched matched = generic_tactic().match(problem);
  if (!matched) return refuse(std::move(matched.error().reason));
  Result<Emission> write = (*matched)->emit({});
  if (!write) return refuse(write.error().message);
  DataDependentEmission emission;
  emission.by_rule = true;
  emission.write = *std::move(write);
  // The step has the op's inputs, in its order: the shape rule reads them, too.
  for (SourceLaunch& each : emission.write.launches)
    for (LaunchArg& arg : each.launch.args)
      if (arg.kind == LaunchArg::input)
        arg.index = static_cast<decltype(arg.index)>(emission.write.inputs[arg.index].index);
  emission.write.inputs.clear();
  for (size_t i = 0; i < problem.inputs.size(); ++i) emission.write.inputs.push_back({StepInput::input, i});
  return emission;
}

}  // namespace lathe::cuda
