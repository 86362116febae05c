// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {

Result<> infer_loop_end(InferContext& context) {
  constexpr size_t kControls = 2;
  const auto carried = static_cast<size_t>(context.attrs<LoopEndAttrs>().carried);
  for (size_t i = 0; i < carried; ++i)
    if (!context.has(kControls + i) || !context.has(kControls + carried + i))
      return fail(ErrorCode::graph_invalid, "loop_end: carried value {} has no value for the next round", i);
  context.set(0, DType::i64, {});
  return {};
}

Result<> eval_loop_end(EvalContext&) {
  return fail(ErrorCode::op_unsupported, "pass form_loops makes a loop of it, which is run");
}

}  // namespace lathe
