// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/op.h"

namespace lathe {

Result<> infer_bitcast(InferContext& context) {
  const DType from = context.dtype(0), to = context.attrs<BitcastAttrs>().to;
  if (bits_of(from) != bits_of(to))
    return fail(ErrorCode::type_mismatch, "bitcast: an element of {} has {} bits, but one of {} has {}", name_of(from),
                bits_of(from), name_of(to), bits_of(to));
  if (to == DType::boolean && from != to)
    return fail(ErrorCode::type_mismatch, "bitcast: bits of {} may be those of no boolean; compare them with 0",
                name_of(from));
  context.set(0, to, context.shape(0));
  return {};
}

Result<> eval_bitcast(EvalContext& context) {
  if (context.input(0).volume() > 0)
    std::memcpy(context.output(0).mutable_data(), context.input(0).data(), context.input(0).bytes());
  return {};
}

}  // namespace lathe
