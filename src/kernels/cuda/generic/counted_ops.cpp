// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/generic/counted_ops.h"

namespace lathe::cuda {

const CountedTacticList& counted_tactics() {
  static const CountedTacticList list = {&select_tactic(), &choose_tactic(), &box_tactic(), &sized_tactic()};
  return list;
}

Operand list_operand(const Expr& length) {
  Operand list;
  list.dtype = DType::i64;
  list.dims = {length};
  list.strides = {1};
  list.opt_dims = list.opt_strides = {1};
  return list;
}

}  // namespace lathe::cuda
