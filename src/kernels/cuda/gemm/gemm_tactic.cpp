// SPDX-License-Identifier: Apache-2.0
// Matrix products by tiles, on tensor cores where the type allows.
#include "kernels/cuda/gemm/normalized_tactic.h"
#include "kernels/cuda/gemm/pipeline_tactic.h"
#include "kernels/cuda/gemm/product_tactic.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using gemm::TileShape;

std::vector<Config> configs(const Problem& problem, const Product& p) {
  gemm::Extent extent = gemm::extent_of(problem, p);
  const gemm::Ending ending = gemm::ending_of(p, problem.inputs[0].dtype);
  extent.copied = gemm::can_copy(problem, p, ending);
  extent.normalized = problem.inputs[0].normalization != nullptr;
  extent.by_rows = gemm::stores_by_rows(ending);
  return gemm::configs(extent);
}

// Adds the launches of the product, by weights that are packed already.
void multiply(const Problem& problem, const Product& p, const TileShape& tile, const gemm::Ending& ending,
              Emission& emission) {
  const DType dtype = problem.inputs[0].dtype;
  if (tile.unit == TileShape::pipeline) return gemm::finish_pipeline(problem, p, tile, ending, emission);
  Source source("gemm/gemm.cuh");
  if (!p.a.has_several_strides()) source.input(0, problem.inputs[0], "A");
  source.input(1, p.weights ? packed_operand(emission.packed[0].content) : problem.inputs[1], "B");
  std::string body =
      gemm::declare_product(source, tile, gemm::tile_type(tile, dtype, p.a.major, p.b.major), p.m, p.n, p.k);
  body += gemm::load_left(source, problem, p, tile, emission);
  body += gemm::dense_loader(source, gemm::dense_operand(source, p, false), tile);
  gemm::finish(source, body, tile, ending, emission);
}

Result<Emission> emit(const Problem& problem, const Product& p, const Config& config) {
  const auto& tile = config.as<TileShape>();
  const DType dtype = problem.inputs[0].dtype;
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}, {p.weights ? StepInput::packed : StepInput::input, p.weights ? 0u : 1u}};
  add_operand_inputs(problem, emission);
  if (p.weights) {
    LATHE_ASSIGN(Packed packed, gemm::pack_weights(problem));
    emission.packed.push_back(std::move(packed));
  }
  gemm::Ending ending = gemm::ending_of(p, dtype);
  std::optional<gemm::NormalizedSums> normalized;
  if (problem.inputs[0].normalization) {
    normalized.emplace(problem, p, tile);
    LATHE_TRY(normalized->add_terms(emission));
    normalized->add_statistics(emission);
    ending.known_rows = normalized->rows();
    ending.around = [&](Source& source, const std::string& sink) { return normalized->sink(source, sink); };
  }
  multiply(problem, p, tile, ending, emission);
  if (normalized) normalized->add_workspace(emission);
  return emission;
}

}  // namespace

Matched match_gemm(const Problem& problem) {
  gemm::Product product;
  constexpr bool kNormalizes = true;
  if (auto reason = gemm::describe_product(problem, product, kNormalizes)) return refuse(*std::move(reason));
  if (auto reason = gemm::refuse_normalization(problem, product)) return refuse(*std::move(reason));
  return match_form(problem, std::move(product), configs, emit);
}

}  // namespace lathe::cuda
