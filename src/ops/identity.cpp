// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/op.h"

namespace lathe {

Result<> infer_identity(InferContext& context) {
  context.set(0, context.dtype(0), context.shape(0));
  if (const std::vector<Expr>* elements = context.partial_elements(0)) context.set_elements(0, *elements);
  return {};
}

Result<> eval_identity(EvalContext& context) {
  std::memcpy(context.output(0).mutable_data(), context.input(0).data(), context.input(0).bytes());
  return {};
}

}  // namespace lathe
