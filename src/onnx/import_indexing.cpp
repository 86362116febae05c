// SPDX-License-Identifier: Apache-2.0
// Operators that read or write at computed positions.
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

ScatterReduction scatter_reduction(NodeContext& c) {
  const std::string name = c.string("reduction", "none");
  if (name == "none") return ScatterReduction::none;
  if (name == "add") return ScatterReduction::add;
  if (name == "mul") return ScatterReduction::mul;
  if (name == "max") return ScatterReduction::max;
  if (name == "min") return ScatterReduction::min;
  c.invalid("reduction '{}' is unknown", name);
  return ScatterReduction::none;
}

}  // namespace

void import_gather(NodeContext& c) { c.set_output(0, c.gather(c.require(0), c.require(1), c.integer("axis", 0))); }

void import_gather_elements(NodeContext& c) {
  GatherElementsAttrs attributes;
  attributes.axis = c.integer("axis", 0);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1)}));
}

void import_gather_nd(NodeContext& c) {
  GatherNdAttrs attributes;
  attributes.batch_dims = c.integer("batch_dims", 0);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1)}));
}

void import_scatter_elements(NodeContext& c) {
  ScatterElementsAttrs attributes;
  attributes.axis = c.integer("axis", 0);
  attributes.reduction = scatter_reduction(c);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1), c.require(2)}));
}

void import_scatter_nd(NodeContext& c) {
  ScatterNdAttrs attributes;
  attributes.reduction = scatter_reduction(c);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1), c.require(2)}));
}

void import_one_hot(NodeContext& c) {
  OneHotAttrs attributes;
  attributes.axis = c.integer("axis", -1);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1), c.require(2)}));
}

void import_nonzero(NodeContext& c) { c.set_output(0, c.add(NonzeroAttrs{}, {c.require(0)})); }

void import_compress(NodeContext& c) {
  CompressAttrs attributes;
  attributes.flat = !c.has_attribute("axis");
  attributes.axis = c.integer("axis", 0);
  c.set_output(0, c.add(attributes, {c.require(0), c.require(1)}));
}

}  // namespace lathe::onnx
