// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {

Result<> infer_loop_result(InferContext& context) {
  const auto& attrs = context.attrs<LoopResultAttrs>();
  Shape shape = context.shape(0);
  if (attrs.stacks) {
    LATHE_ASSIGN(const int64_t axis, normalize_axis(attrs.axis, context.rank(0) + 1));
    const std::vector<Expr>* length = context.has(2) ? context.elements(2) : nullptr;
    shape.insert(shape.begin() + axis, length ? length->at(0) : context.new_symbol("rounds"));
  }
  context.set(0, context.dtype(0), std::move(shape));
  return {};
}

Result<> eval_loop_result(EvalContext&) {
  return fail(ErrorCode::op_unsupported, "pass form_loops makes a loop of it, which is run");
}

}  // namespace lathe
