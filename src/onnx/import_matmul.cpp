// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

namespace lathe::onnx {

void import_matmul(NodeContext& c) { c.set_output(0, c.matmul(c.require(0), c.require(1))); }

// alpha * op(A) * op(B) + beta * C
void import_gemm(NodeContext& c) {
  c.ignore({"broadcast"});  // before version 7: C is [M, N], [N] or one element, which broadcasts in any case
  ir::Value* a = c.require(0);
  ir::Value* b = c.require(1);
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  const ir::Transposed transposed{.a = c.flag("transA", false), .b = c.flag("transB", false)};
  if (a->rank() != 2 || b->rank() != 2) return c.invalid("A and B must be matrices");
  ir::Value* y = c.matmul(a, b, transposed);
  if (alpha != 1) y = c.binary(ElementwiseOp::mul, y, alpha);
  if (!c.has(2) || beta == 0) return c.set_output(0, y);
  ir::Value* sum = c.plus(y, beta == 1 ? c.input(2) : c.binary(ElementwiseOp::mul, c.input(2), beta));
  // C may be repeated over the product, never the product over C.
  c.set_output(0, c.require_shape("the product plus C", sum, c.shape_of(y)));
}

void import_einsum(NodeContext& c) {
  EinsumAttrs attributes;
  attributes.equation = c.string("equation", "");
  c.set_output(0, c.add(attributes, c.inputs()));
}

}  // namespace lathe::onnx
