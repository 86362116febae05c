// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/generic/data_dependent_ops.h"

namespace lathe::cuda {

const DataDependentTacticList& data_dependent_tactics() {
  static const DataDependentTacticList list = {{"select", match_selection},
                                               {"choose", match_choice},
                                               {"suppress", match_suppression},
                                               {"generic", match_by_rule}};
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
