// SPDX-License-Identifier: Apache-2.0
#include "ir/doubles.h"

namespace lathe::ir {
namespace {

bool is_computed_in(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

Result<Tensor> convert(const Tensor& tensor, DType from, DType to) {
  if (!tensor.defined() || tensor.dtype() != from) return tensor;
  CastAttrs cast;
  cast.to = to;
  LATHE_ASSIGN(std::vector<Tensor> results, run_op(cast, {&tensor, 1}, 1));
  return results[0];
}

template <class Attrs>
Result<std::vector<Tensor>> run_widened(const Node& node, std::span<const Tensor> operands) {
  Attrs attrs = node.attrs<Attrs>();
  if (is_computed_in(attrs.to)) attrs.to = DType::f64;
  return run_op(attrs, operands, node.num_outputs());
}

Result<std::vector<Tensor>> run(const Node& node, std::span<const Tensor> operands) {
  if (node.is(OpKind::cast)) return run_widened<CastAttrs>(node, operands);
  if (node.is(OpKind::dequantize)) return run_widened<DequantizeAttrs>(node, operands);
  return run_op(node.attributes(), operands, node.num_outputs());
}

}  // namespace

Result<Tensor> as_doubles(const Tensor& tensor) {
  return tensor.defined() && is_computed_in(tensor.dtype()) ? convert(tensor, tensor.dtype(), DType::f64) : tensor;
}

Result<std::vector<Tensor>> run_in_doubles(const Node& node, std::span<const Tensor> operands) {
  Result<std::vector<Tensor>> results = run(node, operands);
  if (results) return results;
  std::vector<Tensor> narrow;
  for (const Tensor& operand : operands) {
    LATHE_ASSIGN(narrow.emplace_back(), convert(operand, DType::f64, DType::f32));
  }
  return run_op(node.attributes(), narrow, node.num_outputs());
}

}  // namespace lathe::ir
