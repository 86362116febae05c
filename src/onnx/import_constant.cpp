// SPDX-License-Identifier: Apache-2.0
// Operators that make values rather than compute them.
#include "onnx/importer.h"

namespace lathe::onnx {

void import_constant(NodeContext& c) {
  const TensorData* tensor = c.tensor("value");
  if (tensor && tensor->type == ElementType::string)
    return c.set_text(0, c.text_constant(tensor->dims, tensor->strings));
  if (tensor) return c.set_output(0, c.constant(c.weight(to_tensor(*tensor))));
  if (c.has_attribute("value_float"))
    return c.set_output(0, c.constant(Tensor::of<float>({}, {static_cast<float>(c.real("value_float", 0))})));
  if (c.has_attribute("value_int"))
    return c.set_output(0, c.constant(c.weight(Tensor::of<int64_t>({}, {c.integer("value_int", 0)}))));
  if (c.has_attribute("value_ints")) {
    const Ints values = c.integers("value_ints");
    return c.set_output(0, c.constant(c.weight(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values))));
  }
  if (c.has_attribute("value_floats")) {
    const std::vector<double> values = c.reals("value_floats");
    const std::vector<float> floats(values.begin(), values.end());
    return c.set_output(0, c.constant(Tensor::from<float>({static_cast<int64_t>(floats.size())}, floats)));
  }
  if (c.has_attribute("value_string")) return c.set_text(0, c.text_constant({}, {c.string("value_string", "")}));
  if (c.has_attribute("value_strings")) {
    const std::vector<std::string> values = c.strings("value_strings");
    return c.set_text(0, c.text_constant({static_cast<int64_t>(values.size())}, {values.begin(), values.end()}));
  }
  if (c.has_attribute("sparse_value")) return c.unsupported("sparse tensors are not supported");
  c.invalid("no attribute gives its value");
}

void import_constant_of_shape(NodeContext& c) {
  const TensorData* data = c.tensor("value");
  Tensor value = Tensor::of<float>({1}, {0});
  if (data) {
    Result<Tensor> given = c.weight(to_tensor(*data));
    if (!given) return c.set_error(std::move(given).error());
    value = std::move(*given);
  }
  c.set_output(0, c.fill(c.require(0), std::move(value)));
}

void import_identity(NodeContext& c) { c.pass_on(0, c.require_slot(0)); }

void import_range(NodeContext& c) { c.set_output(0, c.add(RangeAttrs{}, {c.require(0), c.require(1), c.require(2)})); }

void import_eye_like(NodeContext& c) {
  EyeLikeAttrs attributes;
  ir::Value* x = c.require(0);
  const auto type = static_cast<ElementType>(c.integer("dtype", static_cast<int64_t>(from_dtype(x->dtype()))));
  if (!to_dtype(type)) return c.unsupported("its type {} is not supported", name_of(type));
  attributes.dtype = *to_dtype(type);
  attributes.k = c.integer("k", 0);
  c.set_output(0, c.add(attributes, {x}));
}

void import_shape(NodeContext& c) {
  ir::Value* x = c.require(0);
  c.set_output(0, c.shape_of(x, c.integer("start", 0), c.integer("end", INT64_MAX)));
}

void import_size(NodeContext& c) { c.set_output(0, c.add(SizeAttrs{}, {c.require(0)})); }

}  // namespace lathe::onnx
