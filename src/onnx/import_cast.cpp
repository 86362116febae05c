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

}  // namespace

void import_cast(NodeContext& c) {
  c.ignore({"saturate", "round_mode"});  // they concern 8-bit and narrower floats only
  ir::Value* x = c.require(0);
  const ElementType type =
      c.version() < 6 ? legacy_type(c.string("to", "")) : static_cast<ElementType>(c.require_integer("to"));
  const std::optional<DType> to = to_dtype(type);
  if (!to) return c.unsupported("Lathe cannot cast to {}", name_of(type));
  CastAttrs attributes;
  attributes.to = *to;
  c.set_output(0, c.add(attributes, {x}));
}

void import_cast_like(NodeContext& c) {
  c.ignore({"saturate", "round_mode"});
  CastAttrs attributes;
  attributes.to = c.require(1)->dtype();
  c.set_output(0, c.add(attributes, {c.require(0)}));
}

}  // namespace lathe::onnx
