// SPDX-License-Identifier: Apache-2.0
// Kernel `reduce_elements`: the reductions of kernel `reduce` of elements of any type, those of f64 and of integers
// above all.
//   program  none
//   params   ReduceParams
//   inputs   one, of any strides
//   outputs  one of the input's type; of the input's rank with dimensions of 1 for the axes, or without those
//   dimensions
// Integers wrap, and their means are truncated; square roots and logarithms of integers are those of doubles. Over no
// elements integers give 0, 1 for a product, and the ends of their range for maximum and minimum.
#pragma once

#include "kernels/cpu/accumulate.h"
#include "kernels/cpu/elementwise/elementwise.h"

namespace lathe::cpu::reduce_elements {

// A total; the member of the lane's type counts.
union Number {
  int64_t i64;
  uint64_t u64;
  double f64;
};

// Continues *total with `count` numbers. `neutral` is the total of no numbers. Sums of exponentials are those of
// differences to `shift`; other kinds do not read it.
using Row = void(Accumulation kind, elementwise::Lane lane, const void* numbers, int64_t count, Number neutral,
                 double shift, Number* total);
// Continues each totals[c] with numbers[c]; null `shifts` are zeros.
using Columns = void(Accumulation kind, elementwise::Lane lane, const void* numbers, int64_t count,
                     const double* shifts, Number* totals);

}  // namespace lathe::cpu::reduce_elements

namespace lathe::cpu {
LATHE_ISA_DECLARE(reduce_elements::Row reduce_row)
LATHE_ISA_DECLARE(reduce_elements::Columns reduce_columns)
}  // namespace lathe::cpu
