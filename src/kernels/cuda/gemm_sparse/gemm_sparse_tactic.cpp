// SPDX-License-Identifier: Apache-2.0
// Matrix products with 2:4 sparse weights, by tiles on tensor cores.
#include "kernels/cuda/gemm/product_tactic.h"
#include "kernels/cuda/gemm_sparse/weights_tactic.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using gemm::TileShape;

std::vector<Config> configs(const Problem& problem, const Product& p) {
  gemm::Extent extent = gemm::extent_of(problem, p);
  extent.sparse = true;
  return gemm::configs(extent);
}

// Which of the weights' matrices, of so many elements, a block multiplies, as text.
std::string matrix_text(Source& source, const Product& p, int64_t elements) {
  gemm::Matrix numbers = p.b;
  for (Expr& stride : numbers.batch_strides) stride = floordiv(stride, elements);
  return "0" + gemm::batch_offset(source, p, numbers);
}

Result<Emission> emit(const Problem& problem, const Product& p, const Config& config) {
  const auto& tile = config.as<TileShape>();
  const DType dtype = problem.inputs[0].dtype;
  LATHE_ASSIGN(const Packed rows, gemm::pack_weights(problem));
  const Dims& dims = rows.dims();  // matrices, columns, K
  LATHE_ASSIGN(const gemm::SparseWeights weights, gemm::compress(rows.content(), dims[0]));
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}};
  gemm::add_weights(weights, emission);
  add_operand_inputs(problem, emission);
  Source source("gemm_sparse/gemm_sparse.cuh");
  if (!p.a.has_several_strides()) source.input(0, problem.inputs[0], "A");
  std::string body =
      gemm::declare_product(source, tile, gemm::tile_type(tile, dtype, p.a.major, p.b.major), p.m, p.n, p.k);
  body += gemm::load_left(source, problem, p, tile, emission);
  body += gemm::sparse_loader(source, weights, tile, matrix_text(source, p, dims[1] * dims[2]));
  gemm::Ending ending = gemm::ending_of(p, dtype);
  ending.first_operand = 3;
  gemm::finish(source, body, tile, ending, emission);
  return emission;
}

}  // namespace

Matched match_gemm_sparse(const Problem& problem) {
  if (auto reason = gemm::refuse_sparse(problem)) return refuse(*std::move(reason));
  Product product;
  if (auto reason = gemm::describe_product(problem, product)) return refuse(*std::move(reason));
  if (!product.weights) return refuse("the second factor is not constant");
  if (!gemm::has_tensor_core(problem, product.a.major)) return refuse("a first factor that is not contiguous along K");
  return match_form(problem, std::move(product), configs, emit);
}

}  // namespace lathe::cuda
