// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes or move elements.
#include "onnx/importer.h"
#include "ops/rules.h"

namespace lathe::onnx {
namespace {

// A list that was an attribute before `version` and is an input since; null when absent.
ir::Value* list(NodeContext& c, int64_t version, const char* attribute, size_t input) {
  if (c.version() >= version) return c.input(input);
  return c.has_attribute(attribute) ? c.ints(c.integers(attribute)) : nullptr;
}

}  // namespace

void import_reshape(NodeContext& c) {
  c.ignore({"consumed_inputs"});
  ir::Value* x = c.require(0);
  ir::Value* shape = list(c, 5, "shape", 1);
  if (!shape) return c.invalid("it has no shape");
  c.set_output(0, c.reshape(x, shape, c.flag("allowzero", false)));
}

void import_flatten(NodeContext& c) {
  FlattenAttrs attributes;
  attributes.axis = c.integer("axis", 1);
  c.set_output(0, c.add(attributes, {c.require(0)}));
}

void import_squeeze(NodeContext& c) { c.set_output(0, c.add(SqueezeAttrs{}, {c.require(0), list(c, 13, "axes", 1)})); }

void import_unsqueeze(NodeContext& c) {
  ir::Value* axes = list(c, 13, "axes", 1);
  if (!axes) return c.invalid("it has no axes");
  c.set_output(0, c.add(UnsqueezeAttrs{}, {c.require(0), axes}));
}

void import_transpose(NodeContext& c) {
  ir::Value* x = c.require(0);
  Ints perm = c.integers("perm");
  if (!c.has_attribute("perm"))
    for (int i = x->rank(); i-- > 0;) perm.push_back(i);
  c.set_output(0, c.transpose(x, perm));
}

void import_concat(NodeContext& c) {
  const int64_t axis = c.version() < 4 ? c.integer("axis", 1) : c.require_integer("axis");
  c.set_output(0, c.concat(c.inputs(), axis));
}

void import_split(NodeContext& c) {
  SplitAttrs attributes;
  attributes.axis = c.integer("axis", 0);
  ir::Value* x = c.require(0);
  // Version 1 allows either an attribute or an input.
  ir::Value* sizes = c.version() < 2 && c.has(1) ? c.input(1) : list(c, 13, "split", 1);
  const int64_t count = c.integer("num_outputs", static_cast<int64_t>(c.num_outputs()));
  if (count != static_cast<int64_t>(c.num_outputs()))
    return c.invalid("num_outputs is {}, but it has {} outputs", count, c.num_outputs());
  // Before version 18 the parts are equal, which their sizes say: those of an extent of 3 in 2 do not add up to it.
  if (!sizes && c.version() < 18) {
    ir::Value* extent = c.shape_of(x, c.axis(attributes.axis, x->rank()), c.axis(attributes.axis, x->rank()) + 1);
    sizes = c.expand(c.divide(extent, c.ints({count})), c.ints({count}));
  }
  c.set_outputs(c.add_all(attributes, {x, sizes}, c.num_outputs()));
}

void import_slice(NodeContext& c) {
  ir::Value* x = c.require(0);
  if (c.version() >= 10)
    return c.set_output(0, c.add(SliceAttrs{}, {x, c.require(1), c.require(2), c.input(3), c.input(4)}));
  ir::Value* axes = c.has_attribute("axes") ? c.ints(c.integers("axes")) : nullptr;
  c.set_output(0, c.add(SliceAttrs{}, {x, c.ints(c.integers("starts")), c.ints(c.integers("ends")), axes}));
}

void import_pad(NodeContext& c) {
  PadAttrs attributes;
  const std::string mode = c.string("mode", "constant");
  if (mode == "reflect")
    attributes.mode = PadMode::reflect;
  else if (mode == "edge")
    attributes.mode = PadMode::edge;
  else if (mode == "wrap")
    attributes.mode = PadMode::wrap;
  else if (mode != "constant")
    return c.invalid("mode '{}' is unknown", mode);
  ir::Value* x = c.require(0);
  if (c.version() >= 11) return c.set_output(0, c.add(attributes, {x, c.require(1), c.input(2), c.input(3)}));
  const char* name = c.version() < 2 ? "paddings" : "pads";
  if (!c.has_attribute(name)) return c.invalid("attribute '{}' is required", name);
  c.set_output(0, c.add(attributes, {x, c.ints(c.integers(name)), c.scalar_like(c.real("value", 0), x)}));
}

void import_expand(NodeContext& c) { c.set_output(0, c.expand(c.require(0), c.require(1))); }

void import_tile(NodeContext& c) {
  ir::Value* x = c.require(0);
  if (c.version() >= 6) return c.set_output(0, c.add(TileAttrs{}, {x, c.require(1)}));
  // Version 1: `tiles` repetitions along `axis`, both scalars.
  const std::optional<double> axis = c.constant_scalar(c.require(2));
  if (!axis) return c.unsupported("its axis (input 2) must be a constant");
  const int64_t along = c.axis(round_to<int64_t>(*axis), x->rank());
  ir::Value* tiles = c.reshape(c.cast(c.require(1), DType::i64), Ints{1});
  std::vector<ir::Value*> repeats;
  for (int64_t i = 0; i < x->rank(); ++i) repeats.push_back(i == along ? tiles : c.ints({1}));
  c.set_output(0, c.add(TileAttrs{}, {x, c.concat(repeats, 0)}));
}

void import_depth_to_space(NodeContext& c) {
  DepthToSpaceAttrs attributes;
  attributes.block = c.require_integer("blocksize");
  const std::string mode = c.string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return c.invalid("mode '{}' is unknown", mode);
  attributes.mode = mode == "DCR" ? DepthToSpaceMode::dcr : DepthToSpaceMode::crd;
  c.set_output(0, c.add(attributes, {c.require(0)}));
}

void import_space_to_depth(NodeContext& c) {
  SpaceToDepthAttrs attributes;
  attributes.block = c.require_integer("blocksize");
  c.set_output(0, c.add(attributes, {c.require(0)}));
}

void import_trilu(NodeContext& c) {
  TriluAttrs attributes;
  attributes.upper = c.flag("upper", true);
  c.set_output(0, c.add(attributes, {c.require(0), c.input(1)}));
}

}  // namespace lathe::onnx
