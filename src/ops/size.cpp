// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace lathe {

Result<> infer_size(InferContext& context) {
  context.set(0, DType::i64, {});
  context.set_elements(0, {volume(context.shape(0))});
  return {};
}

Result<> eval_size(EvalContext& context) {
  *context.output(0).mutable_as<int64_t>() = context.input(0).volume();
  return {};
}

}  // namespace lathe
