// SPDX-License-Identifier: Apache-2.0
#include "compose/scan.h"

namespace lathe {

ir::Value* scan(ir::GraphBuilder& c, ir::Value* begin, ir::Value* scanned, const ScanForm& how, const ScanStep& step) {
  LoopAttrs attributes;
  attributes.carried = 1;
  attributes.scan_axes = {how.axis};
  attributes.scan_reversed = {how.is_reversed};
  if (how.stacks) attributes.stack_axes = {how.axis}, attributes.stack_reversed = {0};
  const std::vector<ir::Value*> operands = {nullptr, nullptr, begin, scanned};
  if (c.failed()) return begin;
  Result<std::unique_ptr<ir::Graph>> body = c.graph().make_body(c.name(), attributes, operands);
  if (!body) return c.set_error(body.error()), begin;
  const std::vector<ir::Value*>& inputs = (*body)->inputs();  // round, condition, state, slice
  ir::GraphBuilder inside(**body, {c.name() + how.part, {c.name()}, {}});
  ir::Value* state = step(inside, inputs[2], inputs[3]);
  if (inside.error()) return c.set_error(*inside.error(), inside.where()), begin;
  (*body)->add_output(inputs[1]);
  (*body)->add_output(state);
  if (how.stacks) (*body)->add_output(state);
  std::vector<std::unique_ptr<ir::Graph>> bodies;
  bodies.push_back(*std::move(body));
  ir::Node* loop = c.add_node(attributes, std::move(bodies), operands, how.stacks ? 2 : 1);
  return loop ? loop->output(how.stacks ? 1 : 0) : begin;
}

}  // namespace lathe
