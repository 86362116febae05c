// SPDX-License-Identifier: Apache-2.0
// Gathers of bytes by bytes: kernel "lookup".
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {

Matched match_lookup(const Problem& problem) {
  if (!problem.is(OpKind::gather)) return refuse("not a gather");
  const Operand &table = problem.inputs[0], &indices = problem.inputs[1];
  if (!is_byte_integer(table.dtype) || !is_byte_integer(indices.dtype)) return refuse("not 8-bit integers");
  if (table.dims != Shape{256} || table.strides != Shape{1}) return refuse("no table for each integer of 8 bits");
  return match_root(problem, std::vector<int64_t>{}, {0, 1});
}

}  // namespace lathe::cpu
