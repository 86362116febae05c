// SPDX-License-Identifier: Apache-2.0
// Control flow becomes blocks of the plan: a step whose bodies' steps follow it (docs/plan_format.md).
#include <algorithm>

#include "lowering/region_lowering.h"

namespace lathe {

using ir::Node;
using ir::Value;
using plan::TensorId;

namespace {

constexpr size_t kControls = 2;  // trip count and condition, before a loop's carried values

std::vector<plan::Slice> slices_of(const Ints& axes, const Ints& reversed) {
  std::vector<plan::Slice> slices;
  for (size_t i = 0; i < axes.size(); ++i) slices.push_back({static_cast<uint32_t>(axes[i]), reversed[i] != 0});
  return slices;
}

}  // namespace

GraphLowering::GraphLowering(const ir::Graph& graph, const LoweringContext& context, PlanTensors* outer)
    : costs(context.options.tuner.target, context.optimum),
      regions(group_regions(graph, {context.options.optimize, context.options.traits}, costs, context.refused)),
      placement(graph, regions, context.options.tactics.empty(), context.options.traits, costs),
      lowering(graph, placement, context, outer) {}

// The memory of a value that bodies read where it lies: dense, from the start of a storage.
TensorId RegionLowering::visible_inside(const Value* value) {
  const TensorId id = dense_of(value);
  if (tensors_[id].offset == Expr(0) && tensors_[id].dims == value->shape()) return id;
  const TensorId copy = tensors_.temporary(value->name(), value->dtype(), value->shape());
  lower_copy(id, copy, "copy " + value->name(), {});
  return copy;
}

// What a body's nodes rely on: on sizes known before the block when the body begins, else as soon as they are known.
void RegionLowering::add_constraints(const Node& node, const ir::Graph& graph, plan::Body& body) {
  const std::vector<SymbolId> inner = node.inner_symbols();
  for (const auto& each : graph.nodes())
    for (const Constraint& constraint : each->constraints()) {
      const std::vector<SymbolId> symbols = symbols_of(constraint);
      const bool is_inner =
          std::ranges::any_of(symbols, [&](SymbolId id) { return std::ranges::count(inner, id) > 0; });
      std::vector<Constraint>& to = is_inner ? plan_.constraints : body.constraints;
      if (std::ranges::find(to, constraint) == to.end()) to.push_back(constraint);
    }
}

Result<plan::Body> RegionLowering::lower_body(const Node& node, size_t number, std::vector<TensorId> inputs,
                                              Pending& block) {
  const ir::Graph& graph = *node.bodies()[number];
  block.bodies.push_back(std::make_shared<GraphLowering>(graph, context_, &tensors_));
  RegionLowering& lowering = block.bodies.back()->lowering;
  lowering.tensors_.bind_body(inputs);
  for (const Region& region : block.bodies.back()->regions) LATHE_TRY(lowering.lower(region));
  plan::Body body;
  add_constraints(node, graph, body);
  body.params = std::move(inputs);
  for (const ir::Output& output : graph.outputs()) body.results.push_back(lowering.dense_of(output.value));
  return body;
}

// A loop's body has tensors of its own for what each round begins with, and reads other values where they lie.
Result<> RegionLowering::lower_loop(const Node& node, Pending& pending, plan::Block& block) {
  const auto& attrs = node.attrs<LoopAttrs>();
  const ir::Graph& graph = *node.bodies()[0];
  const size_t moved = kControls + static_cast<size_t>(attrs.carried) + attrs.scan_axes.size();
  block.kind = plan::BlockKind::loop;
  block.carried = static_cast<uint32_t>(attrs.carried);
  block.scanned = slices_of(attrs.scan_axes, attrs.scan_reversed);
  block.stacked = slices_of(attrs.stack_axes, attrs.stack_reversed);
  std::vector<TensorId> inside;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value *from = node.input(i), *param = graph.inputs()[i];
    const bool is_read = !param->uses().empty() || param->is_graph_output();
    if (i >= moved) {
      inside.push_back(is_read ? visible_inside(from) : plan::kNoTensor);
      continue;
    }
    const bool is_sized = i == 0 && from && from->elements();  // what is known of the number says all
    if (is_sized) block.trips = {from->elements()->at(0)};
    pending.step.inputs.push_back(from && !is_sized ? dense_of(from) : plan::kNoTensor);
    if (i == 1 && !from && is_read) {
      inside.push_back(tensors_.constant_of({Tensor::of<bool>({}, {true}), nullptr}, param->name()));
      continue;
    }
    inside.push_back(i < kControls && !is_read ? plan::kNoTensor
                                               : tensors_.temporary(param->name(), param->dtype(), param->shape()));
  }
  LATHE_ASSIGN(plan::Body body, lower_body(node, 0, std::move(inside), pending));
  body.params.resize(moved);
  if (!node.input(1)) body.params[1] = body.results[0] = plan::kNoTensor;  // no condition ends it
  block.bodies.push_back(std::move(body));
  return {};
}

Result<> RegionLowering::lower_branch(const Node& node, Pending& pending, plan::Block& block) {
  block.kind = plan::BlockKind::branch;
  pending.step.inputs = {dense_of(node.input(0))};
  std::vector<TensorId> inside;
  for (size_t i = 1; i < node.num_inputs(); ++i) inside.push_back(visible_inside(node.input(i)));
  for (const size_t number : {0, 1}) {
    LATHE_ASSIGN(plan::Body body, lower_body(node, number, inside, pending));
    body.params.clear();
    block.bodies.push_back(std::move(body));
  }
  return {};
}

Result<> RegionLowering::lower_control_flow(const Node& node) {
  Pending pending(node.name(), node.origin(), "");
  plan::Block block;
  LATHE_TRY(node.is(OpKind::loop) ? lower_loop(node, pending, block) : lower_branch(node, pending, block));
  pending.step.work = std::move(block);
  pending.kind = pending.step.kind();
  add_with_outputs(std::move(pending), node);
  return {};
}

// The block's step, then those of its bodies.
Result<> RegionLowering::write_block(Pending& pending) {
  const size_t at = plan_.steps.size();
  add_step(std::move(pending.step), std::move(pending.kind), {});
  for (size_t i = 0; i < pending.bodies.size(); ++i) {
    const size_t begin = plan_.steps.size();
    LATHE_TRY(pending.bodies[i]->lowering.write_steps());
    std::get<plan::Block>(plan_.steps[at].work).bodies[i].steps = static_cast<uint32_t>(plan_.steps.size() - begin);
  }
  return {};
}

}  // namespace lathe
