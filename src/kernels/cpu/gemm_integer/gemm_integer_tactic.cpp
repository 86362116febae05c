// SPDX-License-Identifier: Apache-2.0
// Matrix products of 8-bit integers: kernel "gemm_integer".
#include <numeric>

#include "base/divide.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/integer_tactic.h"
#include "kernels/cpu/gemm/tile_cost_tactic.h"
#include "kernels/cpu/gemm_integer/gemm_integer.h"
#include "kernels/match_tactic.h"

namespace lathe::cpu {
namespace {

struct Sizes {
  int64_t k, n, rows;
};

Sizes sizes_of(const Problem& problem) {
  const Dims &b = problem.inputs[1].opt_dims, &out = problem.outputs[0].opt_dims;
  const size_t column = b.size() - (problem.attrs<MatmulAttrs>().transpose_b ? 2 : 1), row = 2 * b.size() - 3 - column;
  return {b[row], b[column], std::accumulate(out.begin(), out.end() - 1, int64_t{1}, std::multiplies<>())};
}

// Whether B is packed while building.
bool is_packed(const Problem& problem) {
  const Operand &a = problem.inputs[0], &b = problem.inputs[1];
  return b.constant && b.dtype == DType::i8 && b.rank() == 2 && a.rank() == problem.outputs[0].rank() &&
         !problem.attrs<MatmulAttrs>().transpose_a && a.strides.back() == Expr(1) && sizes_of(problem).k % 4 == 0;
}

// How many dimensions of the result tell matrices that have a matrix of B each.
size_t matrix_dims(const Problem& problem) {
  const Shape &b = problem.inputs[1].dims, &out = problem.outputs[0].dims;
  const bool has_own = b.size() == out.size() && std::equal(b.begin(), b.end() - 2, out.begin());
  return has_own && !is_packed(problem) ? out.size() - 2 : 0;
}

std::vector<Config> configs(const Problem& problem, const Sizes& sizes) {
  gemm::TiledProduct product;  // of fours along K
  product.rows = sizes.rows;
  product.input_bytes = static_cast<double>(sizes.rows * sizes.k);
  product.is_narrow = gemm::fills_matrix_registers(ceil_div(sizes.k, 4));
  const auto us = [&](const gemm::Blocking& blocking) {
    product.panels = {ceil_div(sizes.k, 4), sizes.n, blocking.width};
    product.blocking = blocking;
    return gemm::predicted_us(problem.target, product) + (is_packed(problem) ? 0 : packing_us(problem));
  };
  const gemm::GemmShape shape{1, sizes.rows, sizes.n, ceil_div(sizes.k, 4)};
  std::vector<gemm::Blocking> choices = gemm::candidates(shape, problem.target.cores);
  std::erase_if(choices, [&](const gemm::Blocking& choice) { return !gemm::has_whole_tiles(problem.target, choice); });
  return configs_of(choices, gemm::to_text, us);
}

Result<Emission> emit(const Problem& problem, const Sizes& sizes, const Config& config) {
  const auto& blocking = config.as<gemm::Blocking>();
  const auto& attrs = problem.attrs<MatmulAttrs>();
  if (!is_packed(problem)) {
    Emission emission = emission_of(problem, gemm::IntegerGemmParams{0, 0, blocking, types_of(problem), false}, {0, 1});
    emission.inputs[0].transposed = attrs.transpose_a;
    emission.inputs[1].transposed = attrs.transpose_b;
    return emission;
  }
  const auto [k, n, rows] = sizes;
  const int8_t* weights = problem.inputs[1].constant->as<int8_t>();
  std::vector<int8_t> columns;
  if (!attrs.transpose_b) {
    columns.resize(static_cast<size_t>(k * n));
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) columns[j * k + i] = weights[i * n + j];
    weights = columns.data();
  }
  const gemm::IntegerGemmParams params{k, n, blocking, types_of(problem)};
  return emit_integers(problem, encode_params(params), {k / 4, n, blocking.width}, 1, weights);
}

}  // namespace

Matched match_gemm_integer(const Problem& problem) {
  if (!problem.is(OpKind::matmul)) return refuse("not a matrix product");
  if (auto reason = unsupported_feature(problem, {.mixed_factors = true})) return refuse(*std::move(reason));
  const Operand &a = problem.inputs[0], &b = problem.inputs[1], &out = problem.outputs[0];
  if (a.rank() < 2 || b.rank() < 2) return refuse("a vector operand");
  if (auto reason = refuse_integers(problem, static_cast<size_t>(out.rank()) - 1, matrix_dims(problem)))
    return refuse(*std::move(reason));
  if (out.strides.back() != Expr(1) && out.dims.back() != Expr(1))
    return refuse("the output's rows are not contiguous");
  return match_form(problem, sizes_of(problem), configs, emit);
}

}  // namespace lathe::cpu
