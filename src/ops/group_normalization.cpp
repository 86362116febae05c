// SPDX-License-Identifier: Apache-2.0
#include "ops/group_rows.h"

namespace lathe {

Result<> infer_group_normalization(InferContext& context) {
  const int64_t groups = context.attrs<GroupNormalizationAttrs>().groups;
  LATHE_TRY(check_channel_affine(context));
  const Expr& channels = context.shape(0)[1];
  if (groups < 1) return fail(ErrorCode::attribute_invalid, "groups is {}, but it must be 1 or more", groups);
  if (!context.assume_equal(mod(channels, groups), 0))
    return fail(ErrorCode::shape_mismatch, "input of shape {} has {} channels, which {} groups do not divide",
                to_string(context.shape(0)), channels.to_string(), groups);
  context.set(0, context.dtype(0), context.shape(0));
  return {};
}

Result<> eval_group_normalization(EvalContext& context) {
  const GroupNormalizationAttrs& attrs = context.attrs<GroupNormalizationAttrs>();
  normalize_groups(context, attrs.groups, attrs.epsilon);
  return {};
}

}  // namespace lathe
