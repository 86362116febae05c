// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/op.h"

namespace lathe {

Result<> infer_constant(InferContext& context) {
  const Tensor& value = context.attrs<ConstantAttrs>().value;
  if (!value.defined()) return fail(ErrorCode::attribute_invalid, "constant has no value");
  context.set(0, value.dtype(), to_shape(value.dims()));
  return {};
}

Result<> eval_constant(EvalContext& context) {
  const Tensor& value = context.attrs<ConstantAttrs>().value;
  std::memcpy(context.output(0).mutable_data(), value.data(), value.bytes());
  return {};
}

}  // namespace lathe
