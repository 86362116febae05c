// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

namespace lathe::onnx {
namespace {

// Before version 6 the type is a name such as "FLOAT16".
ElementType legacy_type(std::string_view name) {
  constexpr std::string_view kNames[] = {"UNDEFINED", "FLOAT",  "UINT8", "INT8",    "UINT16", "INT16",  "INT32",
                                         "INT64",     "STRING", "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<ElementType>(i);
  return ElementType::undefined;
}

// How numbers become 8-bit floats.
CastAttrs cast_to(NodeContext& c, DType to) {
  CastAttrs attributes;
  attributes.to = to;
  const bool saturate = c.integer("saturate", 1) != 0;
  const std::string mode = c.string("round_mode", "up");
  if (is_storage_only(to)) attributes.saturate = saturate;
  if (to != DType::f8e8m0) return attributes;
  if (mode == "down")
    attributes.scale_rounding = ScaleRounding::down;
  else if (mode == "nearest")
    attributes.scale_rounding = ScaleRounding::nearest;
  else if (mode != "up")
    c.invalid("round_mode is '{}'; give up, down or nearest", mode);
  return attributes;
}

bool is_whole(DType type) {
  return is_integral(type) || type == DType::i4 || type == DType::u4 || type == DType::i2 || type == DType::u2;
}

// What text of a type that nothing is computed with is read as and written from.
DType text_type(DType type) { return !is_storage_only(type) ? type : is_whole(type) ? DType::i32 : DType::f32; }

void cast_input(NodeContext& c, DType to) {
  const CastAttrs attributes = cast_to(c, to);
  ir::Value* text = c.text(0);
  ir::Value* x = text ? text : c.require(0);
  if (text) {
    FromTextAttrs reads;
    reads.to = text_type(to);
    x = c.add(reads, {x});
    if (reads.to == to) return c.set_output(0, x);
  }
  c.set_output(0, c.add(attributes, {x}));
}

void cast_to_text(NodeContext& c) {
  c.ignore({"saturate", "round_mode"});
  if (c.text(0)) return c.pass_on(0, c.slot(0));
  ir::Value* x = c.require(0);
  c.set_text(0, c.add(ToTextAttrs{}, {c.cast(x, text_type(x->dtype()))}));
}

}  // namespace

void import_cast(NodeContext& c) {
  const ElementType type =
      c.version() < 6 ? legacy_type(c.string("to", "")) : static_cast<ElementType>(c.require_integer("to"));
  const std::optional<DType> to = to_dtype(type);
  if (type == ElementType::string) return cast_to_text(c);
  if (!to) return c.unsupported("Lathe cannot cast to {}", name_of(type));
  cast_input(c, *to);
}

// A byte of a boolean is 0 or 1 here; another one becomes 1.
void import_bit_cast(NodeContext& c) {
  BitcastAttrs attributes;
  ir::Value* x = c.require(0);
  const auto type = static_cast<ElementType>(c.require_integer("to"));
  const std::optional<DType> to = to_dtype(type);
  if (!to) return c.unsupported("Lathe has no tensors of {}", name_of(type));
  attributes.to = *to;
  const bool tests = *to == DType::boolean && bits_of(x->dtype()) == bits_of(*to);
  c.set_output(0, tests ? c.cast(x, *to) : c.add(attributes, {x}));
}

void import_cast_like(NodeContext& c) {
  if (c.text(1)) return cast_to_text(c);
  cast_input(c, c.require(1)->dtype());
}

}  // namespace lathe::onnx
