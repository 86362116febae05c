// SPDX-License-Identifier: Apache-2.0
// Operators that read or write at computed positions.
#include "compose/unique.h"
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

void import_unique(NodeContext& c) {
  ir::Value* x = c.require(0);
  Unique how;
  how.sorted = c.flag("sorted", true);
  if (c.has_attribute("axis")) how.axis = c.axis(c.integer("axis", 0), x->rank());
  if (c.failed()) return;
  const UniqueValues found = unique_values(c, x, how);
  c.set_outputs({found.values, found.first, found.inverse, found.counts});
}

// Columns of x; of a vector, as of a matrix of one row.
void import_array_feature_extractor(NodeContext& c) {
  ir::Value *x = c.require(0), *columns = c.require(1);
  if (c.failed()) return;
  if (x->rank() == 0) return c.invalid("a scalar has no features");
  if (x->rank() == 1) x = c.unsqueeze(x, {0});
  c.set_output(0, c.gather(x, c.reshape(columns, {-1}), x->rank() - 1));
}

}  // namespace lathe::onnx
