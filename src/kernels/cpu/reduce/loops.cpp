// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/reduce/loops.h"

#include <bit>

#include "kernels/cpu/loop_nest.h"

namespace lathe::cpu::reduce {

Accumulation accumulation_of(Reduction op) {
  switch (op) {
    case Reduction::max:
      return Accumulation::maximum;
    case Reduction::min:
      return Accumulation::minimum;
    case Reduction::product:
      return Accumulation::product;
    case Reduction::l1:
      return Accumulation::sum_abs;
    case Reduction::l2:
    case Reduction::sum_squares:
      return Accumulation::sum_squares;
    case Reduction::log_sum_exp:
      return Accumulation::sum_exp;
    default:
      return Accumulation::sum;
  }
}

TensorArg keep_dims(const TensorArg& output, const TensorArg& input, uint32_t axes) {
  if (output.rank == input.rank) return output;
  TensorArg kept = output;
  kept.rank = input.rank;
  for (int d = 0, own = 0; d < input.rank; ++d) {
    const bool reduced = axes >> d & 1;
    kept.dims[d] = reduced ? 1 : output.dims[own];
    kept.strides[d] = reduced ? 0 : output.strides[own];
    own += !reduced;
  }
  return kept;
}

Result<> check_dims(const TensorArg& in, const TensorArg& out, uint32_t axes) {
  const int reduced = std::popcount(axes);
  if (axes >> in.rank != 0 || (out.rank != in.rank && out.rank != in.rank - reduced))
    return fail(ErrorCode::shape_mismatch, "reduce: input of rank {}, output of rank {}, axes {:#x}", in.rank, out.rank,
                axes);
  const TensorArg kept = keep_dims(out, in, axes);
  for (int d = 0; d < in.rank; ++d)
    if (kept.dims[d] != (axes >> d & 1 ? 1 : in.dims[d]) ||
        (kept.dims[d] > 1 && kept.strides[d] == 0 && kept.volume() > 0))
      return fail(ErrorCode::shape_mismatch, "reduce: the output's dimensions do not fit the input's and the axes");
  return {};
}

Loops::Loops(const TensorArg& input, const TensorArg& kept_output, uint32_t axes) {
  // A loop over results has a stride in the output, one over reduced elements has none: so the two are told apart, and
  // are never merged.
  TensorArg marks = kept_output;
  for (int d = 0; d < input.rank; ++d) marks.strides[d] = axes >> d & 1 ? 0 : kept_output.strides[d];
  const LoopNest nest = make_loop_nest({&input, 1}, {&marks, 1});
  for (int d = 0; d < nest.rank; ++d) {
    const bool is_kept = nest.strides[1][d] != 0;
    int& rank = is_kept ? kept_rank : reduced_rank;
    (is_kept ? kept : reduced)[rank] = nest.dims[d];
    (is_kept ? kept_in : reduced_in)[rank] = nest.strides[0][d];
    if (is_kept) kept_out[rank] = nest.strides[1][d];
    ++rank;
  }
  columns = nest.strides[1][nest.rank - 1] != 0 && nest.strides[0][nest.rank - 1] == 1 && nest.dims[nest.rank - 1] > 1;
}

}  // namespace lathe::cpu::reduce
