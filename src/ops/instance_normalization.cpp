// SPDX-License-Identifier: Apache-2.0
#include "ops/group_rows.h"

namespace lathe {

Result<> infer_instance_normalization(InferContext& context) {
  LATHE_TRY(check_channel_affine(context));
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

// Group normalisation with one channel in each group.
Result<> eval_instance_normalization(EvalContext& context) {
  normalize_groups(context, context.input(0).dims()[1], context.attrs<InstanceNormalizationAttrs>().epsilon);
  return {};
}

}  // namespace lathe
