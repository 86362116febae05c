// SPDX-License-Identifier: Apache-2.0
// Matrix products: kernel "gemm".
#include <algorithm>
#include <numeric>

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/gemm/panels_packing_tactic.h"
#include "kernels/cpu/gemm/split_floats.h"
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

bool rounds(const Problem& problem) { return problem.attrs<MatmulAttrs>().factors == DType::bf16; }
bool shares_b(const Problem& problem) { return matrices_of(problem.inputs[1].opt_dims) == 1; }
// Whether A is in blocks (gemm/pair_blocks.h).
bool has_blocks(const Problem& problem) {
  return rounds(problem) && shares_b(problem) && problem.target.products.matrix > 0;
}

// Its K is what tiles see.
gemm::GemmShape shape_of(const Problem& problem) {
  const Dims& out = problem.outputs[0].opt_dims;
  const int64_t k = k_of(problem).opt_extent;
  return {matrices_of(out), out[out.size() - 2], out[out.size() - 1], rounds(problem) ? gemm::pairs_of(k) : k};
}

// B is packed while running where it is not while building, and matrices of their own are products of their own.
double predicted_us(const Problem& problem, const gemm::GemmShape& shape, const gemm::Blocking& blocking) {
  const bool shared = shares_b(problem);
  const int64_t products = shared ? 1 : shape.batch;
  gemm::TiledProduct product;
  product.rows = shared ? shape.batch * shape.m : shape.m;
  product.panels = {shape.k, shape.n, blocking.width};
  if (has_blocks(problem)) {  // two panels are multiplied together, and two blocks
    product.panels.width *= 2;
    product.row_unit = 2 * gemm::PairBlocks(product.rows, shape.k).height;
  }
  product.input_bytes = static_cast<double>(product.rows * shape.k) * sizeof(float);
  product.blocking = blocking;
  product.is_narrow = rounds(problem);
  product.may_split = !rounds(problem);
  const double launch = problem.target.launch_us, each = gemm::predicted_us(problem.target, product) - launch;
  return launch + static_cast<double>(products) * each + (is_packed(problem) ? 0 : packing_us(problem));
}

std::vector<Config> configs(const Problem& problem, const gemm::GemmShape& shape) {
  const char* type = rounds(problem) ? " bf16" : "";
  std::vector<gemm::Blocking> choices = has_blocks(problem) ? gemm::matrix_candidates(shape, problem.target.cores)
                                                            : gemm::candidates(shape, problem.target.cores);
  const int64_t rows = shares_b(problem) ? shape.batch * shape.m : shape.m;
  std::erase_if(choices, [&](const gemm::Blocking& choice) {
    const gemm::SplitShare share(rows, {shape.k, shape.n, choice.width}, choice.split_columns, problem.target.cores);
    return (rounds(problem) || share.pays(shape.k)) && !gemm::has_whole_tiles(problem.target, choice);
  });
  return configs_of(
      choices, [&](const gemm::Blocking& blocking) { return gemm::to_text(blocking) + type; },
      [&](const gemm::Blocking& blocking) { return predicted_us(problem, shape, blocking); });
}

Result<Emission> emit_packed(const Problem& problem, const gemm::Panels& panels, gemm::GemmParams params) {
  const bool transposed = problem.attrs<MatmulAttrs>().transpose_b;
  params.packed = true;
  params.k = k_of(problem).opt_extent;
  params.n = panels.n;
  params.batches = matrices_of(problem.inputs[1].opt_dims);
  const int64_t k_stride = transposed ? 1 : params.n, n_stride = transposed ? params.k : 1;
  const int64_t matrix = params.k * params.n;
  const auto packing = [&] {
    return gemm::matrices_packing(panels, params.k, k_stride, n_stride, params.batches, params.bf16);
  };
  if (params.bf16) {
    LATHE_ASSIGN(Packed packed, gemm::packed_pairs(problem.inputs[1], packing()));
    return emission_with_weights(problem, encode_params(params), std::move(packed));
  }
  const auto pack = [&](const float* weights, std::span<float> packed) {
    gemm::pack_weights(weights, params.k, params.n, k_stride, n_stride, params.batches, matrix, panels.width, packed);
  };
  return emission_with_weights(problem, encode_params(params), panels.floats() * params.batches, pack, packing);
}

Result<Emission> emit(const Problem& problem, const gemm::GemmShape& shape, const Config& config) {
  const auto& blocking = config.as<gemm::Blocking>();
  const auto& attrs = problem.attrs<MatmulAttrs>();
  const gemm::GemmParams params{.blocking = blocking, .bf16 = rounds(problem)};
  const bool packed = is_packed(problem);
  LATHE_ASSIGN(Emission emission, packed ? emit_packed(problem, {shape.k, shape.n, blocking.width}, params)
                                         : Result<Emission>(emission_of(problem, params, {0, 1})));
  emission.inputs[0].transposed = attrs.transpose_a;
  if (!packed) emission.inputs[1].transposed = attrs.transpose_b;
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
