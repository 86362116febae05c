// SPDX-License-Identifier: Apache-2.0
// Caches that the application keeps: network inputs of which a part is replaced, and which are network outputs then.
#include <algorithm>
#include <unordered_set>

#include "lowering/region_lowering.h"

namespace lathe {

using plan::StorageKind;
using plan::TensorId;

namespace {

bool needs(const ir::Node& node, const ir::Node& other) {
  std::unordered_set<const ir::Node*> seen;
  std::vector<const ir::Node*> left = {&node};
  while (!left.empty()) {
    const ir::Node* next = left.back();
    left.pop_back();
    if (next == &other) return true;
    for (const ir::Value* input : next->inputs())
      if (input && input->producer() && seen.insert(input->producer()).second) left.push_back(input->producer());
  }
  return false;
}

// Whether nothing reads the op's first input later than the op itself: gathers do before it that it needs, in steps of
// their own.
bool is_read_last(const Region& region) {
  const ir::Node& node = *region.root;
  const auto is_before = [&](const ir::Use& use) {
    if (use.node == &node) return use.index == 0;
    return (use.node->is(OpKind::gather) || use.node->is(OpKind::gather_nd)) &&
           std::ranges::count(region.nodes, use.node) == 0 && needs(node, *use.node);
  };
  return std::ranges::all_of(node.input(0)->uses(), is_before);
}

}  // namespace

// Nothing reads later what was there before, so that the application may bind one address to both.
bool RegionLowering::may_be_in_place(const Region& region) {
  const ir::Node& node = *region.root;
  if (!node.has_trait(kUpdates)) return false;
  const ir::Value *before = node.input(0), *after = node.output(0);
  if (!is_read_last(region) || before->content()) return false;
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
  copy.step.tactic = "copy unless one address is bound to both";
  copy.step.inputs = {tensors_.tensor_of(region.root->input(0))};
  copy.step.outputs = {after};
  pending_.push_back(std::move(copy));
  pending_.push_back(std::move(write));
  return true;
}

}  // namespace lathe
