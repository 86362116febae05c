// SPDX-License-Identifier: Apache-2.0
// Convolution as an implicit matrix product whose weights are 2:4 sparse along the channels.
#include "kernels/cuda/conv/implicit_gemm_tactic.h"
#include "kernels/cuda/conv/weights_tactic.h"
#include "kernels/cuda/gemm_sparse/weights_tactic.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda {
namespace {

using conv::ImplicitGemm;
using gemm::TileShape;

std::vector<Config> configs(const Problem& problem, const ImplicitGemm& form) {
  gemm::Extent extent = conv::extent_of(problem, form);
  extent.sparse = true;
  return gemm::configs(extent);
}

Result<Emission> emit(const Problem& problem, const ImplicitGemm& form, const Config& config) {
  const auto& tile = config.as<TileShape>();
  const DType dtype = problem.inputs[0].dtype;
  LATHE_ASSIGN(const Tensor ordered, conv::in_order(*problem.inputs[1].constant, form.shuffle.order));
  LATHE_ASSIGN(const Packed rows, conv::pack_weights(Known{ordered, nullptr}, form.padded));
  LATHE_ASSIGN(const gemm::SparseWeights weights, gemm::compress(rows.content(), form.attributes.groups));
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}};
  gemm::add_weights(weights, emission);
  LATHE_TRY(conv::add_operands(form.shuffle, emission));
  Source source("conv_sparse/conv_sparse.cuh");
  source.input(0, problem.inputs[0], "A");
  std::string body = conv::declare_product(source, tile, dtype, form);
  body += conv::input_loader(source, problem, form, tile, emission);
  body += gemm::sparse_loader(source, weights, tile, "batch");
  gemm::Ending ending = conv::ending_of(form, dtype);
  ending.first_operand = 3;
  gemm::finish(source, std::move(body), tile, ending, emission);
  return emission;
}

}  // namespace

Matched match_conv_sparse(const Problem& problem) {
  if (auto reason = gemm::refuse_sparse(problem)) return refuse(*std::move(reason));
  ImplicitGemm form;
  if (auto reason = conv::describe(problem, form)) return refuse(*std::move(reason));
  if (form.load == conv::PixelLoad::gather) return refuse("an input that is read element by element");
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
