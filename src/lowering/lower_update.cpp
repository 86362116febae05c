// SPDX-License-Identifier: Apache-2.0
// Caches that the application keeps: network inputs of which a part is replaced, and which are network outputs then.
#include <algorithm>

#include "lowering/region_lowering.h"

namespace lathe {

using plan::StorageKind;
using plan::TensorId;

// Nothing else reads what was there before, so that the application may bind one address to both.
bool RegionLowering::may_be_in_place(const Region& region) {
  const ir::Node& node = *region.root;
  if (!node.has_trait(kUpdates)) return false;
  const ir::Value *before = node.input(0), *after = node.output(0);
  if (!before->has_single_use() || before->content()) return false;
  const plan::TensorDesc from = tensors_[tensors_.tensor_of(before)], to = tensors_[tensors_.tensor_of(after)];
  const size_t inputs = graph_.inputs().size();  // their bindings come first
  return from.storage == StorageKind::binding && from.index < inputs && to.storage == StorageKind::binding &&
         to.index >= inputs && placement_.is_dense_linear(before) && placement_.is_dense_linear(after);
}

// As two steps: a copy, which the runtime leaves out where both are one address (plan/aliased_bindings.h), and the
// parts that are written into it. False where it is no such cache, or no tactic takes the op.
Result<bool> RegionLowering::lower_in_place(const Region& region) {
  if (!may_be_in_place(region)) return false;
  Problem problem = problems_.of(region);
  problem.in_place = true;
  Matches matches(std::move(problem), tactics_);
  const auto taken = std::find_if(tactics_.begin(), tactics_.end(),
                                  [&](const Tactic* tactic) { return matches.of(*tactic).has_value(); });
  if (taken == tactics_.end()) return false;
  const Config config = (*matches.of(**taken))->configs().front();
  Pending write(name_of_region(region), origin_of(region), "kernel");
  LATHE_ASSIGN(write.emission, matches.emit(**taken, config));
  write.region = region;
  if (region.producers.empty()) write.region->kind = RegionKind::single;
  write.step.tactic = describe(**taken, config);
  const TensorId after = tensors_.tensor_of(region.result());
  for (const StepInput& input : write.emission->inputs)
    write.step.inputs.push_back(input.kind == StepInput::input && input.index == 0
                                    ? after
                                    : input_of(region, matches.problem(), input, *write.emission, write.step.name));
  write.step.outputs = {after};
  Pending copy(region.root->name() + " (unless in place)", {}, "copy");
  copy.step.work = plan::Copy();
  copy.step.tactic = "plain evaluation";
  copy.step.inputs = {tensors_.tensor_of(region.root->input(0))};
  copy.step.outputs = {after};
  pending_.push_back(std::move(copy));
  pending_.push_back(std::move(write));
  return true;
}

}  // namespace lathe
