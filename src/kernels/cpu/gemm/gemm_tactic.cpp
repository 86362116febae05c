// SPDX-License-Identifier: Apache-2.0
// Matrix products: kernel "gemm".
#include <algorithm>
#include <numeric>

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/panels_packing_tactic.h"
#include "kernels/cpu/gemm/tile_cost_tactic.h"
#include "kernels/match_tactic.h"

namespace lathe::cpu {
namespace {

// Known batches are packed when there is one for each output matrix, or one for all.
bool is_packed(const Problem& problem) {
  const Operand& b = problem.inputs[1];
  if (!b.weights) return false;
  if (b.rank() == 2) return true;
  const Shape& out = problem.outputs[0].dims;
  return b.dims.size() == out.size() && std::equal(b.dims.begin(), b.dims.end() - 2, out.begin());
}

int64_t matrices_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end() - 2, int64_t{1}, std::multiplies<>());
}

// Of B where that is known while building: the columns of A may be found out only while running.
OperandDim k_of(const Problem& problem) {
  const auto& attrs = problem.attrs<MatmulAttrs>();
  const Operand &a = problem.inputs[0], &b = problem.inputs[1];
  return b.weights ? b.dim(b.dims.size() - (attrs.transpose_b ? 1 : 2))
                   : a.dim(a.dims.size() - (attrs.transpose_a ? 2 : 1));
}

gemm::GemmShape shape_of(const Problem& problem) {
  const Dims& out = problem.outputs[0].opt_dims;
  return {matrices_of(out), out[out.size() - 2], out[out.size() - 1], k_of(problem).opt_extent};
}

// B is packed while running where it is not while building, and matrices of their own are products of their own.
double predicted_us(const Problem& problem, const gemm::GemmShape& shape, const gemm::Blocking& blocking) {
  const bool shared = matrices_of(problem.inputs[1].opt_dims) == 1;
  const int64_t products = shared ? 1 : shape.batch;
  gemm::TiledProduct product;
  product.rows = shared ? shape.batch * shape.m : shape.m;
  product.panels = {shape.k, shape.n, blocking.width};
  product.input_bytes = static_cast<double>(product.rows * shape.k) * sizeof(float);
  product.blocking = blocking;
  const double launch = problem.target.launch_us, each = gemm::predicted_us(problem.target, product) - launch;
  return launch + static_cast<double>(products) * each + (is_packed(problem) ? 0 : packing_us(problem));
}

std::vector<Config> configs(const Problem& problem, const gemm::GemmShape& shape) {
  return configs_of(gemm::candidates(shape, problem.target.cores), gemm::to_text,
                    [&](const gemm::Blocking& blocking) { return predicted_us(problem, shape, blocking); });
}

Result<Emission> emit(const Problem& problem, const gemm::GemmShape& shape, const Config& config) {
  const auto& blocking = config.as<gemm::Blocking>();
  const auto& attrs = problem.attrs<MatmulAttrs>();
  gemm::GemmParams params{.blocking = blocking};
  if (!is_packed(problem)) {
    Emission emission = emission_of(problem, params, {0, 1});
    emission.inputs[0].transposed = attrs.transpose_a;
    emission.inputs[1].transposed = attrs.transpose_b;
    return emission;
  }
  params = {shape.k, shape.n, true, matrices_of(problem.inputs[1].opt_dims), blocking};
  const int64_t floats = gemm::packed_floats(params.k, params.n, params.batches, blocking.width);
  const auto pack = [&](const float* weights, std::span<float> packed) {
    gemm::pack_weights(weights, params.k, params.n, attrs.transpose_b ? 1 : params.n, attrs.transpose_b ? params.k : 1,
                       params.batches, params.k * params.n, blocking.width, packed);
  };
  const auto packing = [&] {
    const gemm::Panels panels{params.k, params.n, blocking.width};
    const gemm::KAxis k{params.k, attrs.transpose_b ? 1 : params.n, 1};
    Packing batches = gemm::panels_packing(panels, {&k, 1}, attrs.transpose_b ? params.k : 1)
                          .repeated(params.batches, params.k * params.n, panels.floats());
    batches.dims = {floats};
    return batches;
  };
  LATHE_ASSIGN(Emission emission, emission_with_weights(problem, encode_params(params), floats, pack, packing));
  emission.inputs[0].transposed = attrs.transpose_a;
  return emission;
}

}  // namespace

Matched match_gemm(const Problem& problem) {
  if (!problem.is(OpKind::matmul)) return refuse("not a matrix product");
  if (auto reason = unsupported_feature(problem, {.permuted_inputs = 0b11})) return refuse(*std::move(reason));
  if (auto reason = refuse_non_f32(problem)) return refuse(*std::move(reason));
  const Operand &a = problem.inputs[0], &b = problem.inputs[1], &out = problem.outputs[0];
  if (a.rank() < 2 || b.rank() < 2) return refuse("a vector operand");
  if (out.strides.back() != Expr(1) && out.dims.back() != Expr(1))
    return refuse("the output's rows are not contiguous");
  const Expr n = b.dims[b.dims.size() - (problem.attrs<MatmulAttrs>().transpose_b ? 2 : 1)];
  if (k_of(problem).extent == Expr(0) || n == Expr(0)) return refuse("an empty dimension");
  return match_form(problem, shape_of(problem), configs, emit);
}

}  // namespace lathe::cpu
