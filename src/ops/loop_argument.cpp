// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {

Result<> infer_loop_argument(InferContext& context) {
  const auto& attrs = context.attrs<LoopArgumentAttrs>();
  Shape shape = context.shape(0);
  if (attrs.carried) {
    for (const int64_t d : attrs.varying) {
      if (d < 0 || d >= context.rank(0))
        return fail(ErrorCode::graph_invalid, "loop_argument: dimension {} of a value of rank {} cannot vary", d,
                    context.rank(0));
      shape[static_cast<size_t>(d)] = context.new_symbol("carried", static_cast<size_t>(d));
    }
  } else {
    LATHE_ASSIGN(const int64_t axis, normalize_axis(attrs.axis, context.rank(0)));
    shape.erase(shape.begin() + axis);
  }
  context.set(0, context.dtype(0), std::move(shape));
  return {};
}

Result<> eval_loop_argument(EvalContext&) {
  return fail(ErrorCode::op_unsupported, "pass form_loops makes a loop of it, which is run");
}

}  // namespace lathe
