// SPDX-License-Identifier: Apache-2.0
// Matrix products of 8-bit integers by constant weights: kernel "gemm_integer".
#include <numeric>

#include "kernels/cpu/choices_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/integer_tactic.h"
#include "kernels/cpu/gemm_integer/gemm_integer.h"

namespace lathe::cpu {
namespace {

struct Sizes {
  int64_t k, n, rows;
};

Sizes sizes_of(const Problem& problem) {
  const Dims &b = problem.inputs[1].opt_dims, &out = problem.outputs[0].opt_dims;
  const bool transposed = problem.attrs<MatmulAttrs>().transpose_b;
  return {b[transposed ? 1 : 0], b[transposed ? 0 : 1],
          std::accumulate(out.begin(), out.end() - 1, int64_t{1}, std::multiplies<>())};
}

Result<Emission> emit(const Problem& problem, const gemm::Blocking& blocking) {
  const auto [k, n, rows] = sizes_of(problem);
  const int8_t* weights = problem.inputs[1].constant->as<int8_t>();
  std::vector<int8_t> columns;
  if (!problem.attrs<MatmulAttrs>().transpose_b) {
    columns.resize(static_cast<size_t>(k * n));
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) columns[j * k + i] = weights[i * n + j];
    weights = columns.data();
  }
  const gemm::IntegerGemmParams params{k, n, blocking, types_of(problem)};
  return emit_integers(problem, encode_params(params), {k / 4, n, blocking.width}, 1, weights);
}

Matched match_gemm_integer(const Problem& problem) {
  if (!problem.is(OpKind::matmul)) return refuse("not a matrix product");
  if (auto reason = beyond(problem, {})) return refuse(*std::move(reason));
  const Operand &a = problem.inputs[0], &b = problem.inputs[1], &out = problem.outputs[0];
  if (auto reason = refuse_integers(problem, static_cast<size_t>(out.rank()) - 1)) return refuse(*std::move(reason));
  if (problem.attrs<MatmulAttrs>().transpose_a || b.rank() != 2 || a.rank() < 2 || a.rank() != out.rank())
    return refuse("not rows by a matrix");
  if (a.strides.back() != Expr(1) || (out.strides.back() != Expr(1) && out.dims.back() != Expr(1)))
    return refuse("rows are not contiguous");
  const Sizes sizes = sizes_of(problem);
  if (sizes.k % 4 != 0) return refuse("K is no multiple of 4");
  return match_choices(
      problem,
      [&problem, sizes] {
        return gemm::candidates({1, sizes.rows, sizes.n, sizes.k / 4}, problem.target.cores);
      },
      [](const gemm::Blocking& blocking) { return to_text(blocking); },
      [&problem](const gemm::Blocking& blocking) { return emit(problem, blocking); });
}

}  // namespace

const Tactic& gemm_integer_tactic() {
  static const FunctionTactic tactic("gemm_integer", match_gemm_integer);
  return tactic;
}

}  // namespace lathe::cpu
