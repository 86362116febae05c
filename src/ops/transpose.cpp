// SPDX-License-Identifier: Apache-2.0
#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

Result<Ints> checked_permutation(const TransposeAttrs& attrs, size_t rank) {
  Ints perm = permutation_of(attrs, rank);
  std::vector<bool> seen(rank);
  bool valid = perm.size() == rank;
  for (size_t i = 0; valid && i < rank; ++i) {
    valid = perm[i] >= 0 && perm[i] < static_cast<int64_t>(rank) && !seen[static_cast<size_t>(perm[i])];
    if (valid) seen[static_cast<size_t>(perm[i])] = true;
  }
  if (!valid)
    return fail(ErrorCode::attribute_invalid, "transpose: perm is not a permutation of the {} axes of its input", rank);
  return perm;
}

}  // namespace

Ints permutation_of(const TransposeAttrs& attrs, size_t rank) {
  Ints perm = attrs.perm;
  if (perm.empty())
    for (size_t i = rank; i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  for (int64_t& axis : perm)
    if (axis < 0) axis += static_cast<int64_t>(rank);
  return perm;
}

Result<> infer_transpose(InferContext& context) {
  const Shape& input = context.shape(0);
  LATHE_ASSIGN(const Ints perm, checked_permutation(context.attrs<TransposeAttrs>(), input.size()));
  Shape output;
  for (int64_t axis : perm) output.push_back(input[static_cast<size_t>(axis)]);
  context.set(0, context.dtype(0), std::move(output));
  move_elements(context);
  return {};
}

Result<> eval_transpose(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  LATHE_ASSIGN(const Ints perm, checked_permutation(context.attrs<TransposeAttrs>(), input.dims().size()));
  const Dims strides = row_major_strides(input.dims());
  Dims source;
  for (int64_t axis : perm) source.push_back(strides[static_cast<size_t>(axis)]);
  copy_box(size_of(input.dtype()), output.dims(), input.data(), source, output.mutable_data(),
           row_major_strides(output.dims()));
  return {};
}

}  // namespace lathe
