// SPDX-License-Identifier: Apache-2.0
// Matrix products: kernel "gemm".
#include <algorithm>
#include <numeric>

#include "kernels/cpu/choices_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"

namespace lathe::cpu {
namespace {

// Constant batches are packed when there is one for each output matrix, or one for all.
bool is_packed(const Problem& problem) {
  const Operand& b = problem.inputs[1];
  if (!b.constant) return false;
  if (b.rank() == 2) return true;
  const Shape& out = problem.outputs[0].dims;
  return b.dims.size() == out.size() && std::equal(b.dims.begin(), b.dims.end() - 2, out.begin());
}

int64_t matrices_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end() - 2, int64_t{1}, std::multiplies<>());
}

gemm::GemmShape shape_of(const Problem& problem) {
  const Dims &out = problem.outputs[0].opt_dims, &a = problem.inputs[0].opt_dims;
  const int64_t k = a[a.size() - (problem.attrs<MatmulAttrs>().transpose_a ? 2 : 1)];
  return {matrices_of(out), out[out.size() - 2], out[out.size() - 1], k};
}

Result<Emission> emit(const Problem& problem, const gemm::Blocking& blocking) {
  const auto& attrs = problem.attrs<MatmulAttrs>();
  gemm::GemmParams params{.blocking = blocking};
  if (!is_packed(problem)) {
    Emission emission = emission_of(problem, params, {0, 1});
    emission.inputs[0].transposed = attrs.transpose_a;
    emission.inputs[1].transposed = attrs.transpose_b;
    return emission;
  }
  const auto [batch, m, n, k] = shape_of(problem);
  params = {k, n, true, matrices_of(problem.inputs[1].opt_dims), blocking};
  const int64_t floats = gemm::packed_floats(k, n, params.batches, blocking.width);
  const auto pack = [&](std::span<float> packed) {
    gemm::pack_weights(problem.inputs[1].constant->as<float>(), params.k, params.n, attrs.transpose_b ? 1 : params.n,
                       attrs.transpose_b ? params.k : 1, params.batches, params.k * params.n, blocking.width, packed);
  };
  LATHE_ASSIGN(Emission emission, emission_with_weights(problem, encode_params(params), floats, pack));
  emission.inputs[0].transposed = attrs.transpose_a;
  return emission;
}

Matched match_gemm(const Problem& problem) {
  if (!problem.is(OpKind::matmul)) return refuse("not a matrix product");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b11})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const Operand &a = problem.inputs[0], &b = problem.inputs[1], &out = problem.outputs[0];
  if (a.rank() < 2 || b.rank() < 2) return refuse("a vector operand");
  if (out.strides.back() != Expr(1) && out.dims.back() != Expr(1))
    return refuse("the output's rows are not contiguous");
  const Expr k = a.dims[a.dims.size() - (problem.attrs<MatmulAttrs>().transpose_a ? 2 : 1)];
  const Expr n = b.dims[b.dims.size() - (problem.attrs<MatmulAttrs>().transpose_b ? 2 : 1)];
  if (k == Expr(0) || n == Expr(0)) return refuse("an empty dimension");
  return match_choices(
      problem, [&problem] { return gemm::candidates(shape_of(problem), problem.target.cores); },
      [](const gemm::Blocking& blocking) { return to_text(blocking); },
      [&problem](const gemm::Blocking& blocking) { return emit(problem, blocking); });
}

}  // namespace

const Tactic& gemm_tactic() {
  static const FunctionTactic tactic("gemm", match_gemm);
  return tactic;
}

}  // namespace lathe::cpu
