// SPDX-License-Identifier: Apache-2.0
// Matrix products by tiles, on tensor cores where the type allows.
#include "kernels/cuda/gemm/pipeline_tactic.h"
#include "kernels/cuda/gemm/product_tactic.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using gemm::TileShape;

template <bool kMaps>
std::vector<Config> configs(const Problem& problem, const Product& p) {
  gemm::Extent extent = gemm::extent_of(problem, p);
  const gemm::Ending ending = gemm::ending_of(p, problem.inputs[0].dtype);
  extent.copied = kMaps && gemm::can_copy(problem, p, ending);
  extent.weights_first = p.weights;
  extent.normalized = p.normalization.has_value();
  extent.kept = extent.normalized && !p.normalization->beside;
  extent.by_rows = !extent.kept && gemm::stores_by_rows(ending);
  extent.neighbours = !extent.kept && extent.copied ? gemm::neighbours(p, ending) : 0;
  return gemm::configs(extent);
}

Result<Emission> emit(const Problem& problem, const Product& p, const Config& config) {
  const auto& tile = config.as<TileShape>();
  const DType dtype = problem.inputs[0].dtype;
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}, {p.weights ? StepInput::packed : StepInput::input, p.weights ? 0u : 1u}};
  add_operand_inputs(problem, emission);
  Operand b = problem.inputs[1];
  if (p.weights) {
    LATHE_ASSIGN(Packed packed, gemm::pack_weights(problem));
    b = packed_operand(packed);
    emission.packed.push_back(std::move(packed));
  }
  if (tile.unit == TileShape::pipeline) {
    gemm::finish_pipeline(problem, p, tile, gemm::ending_of(p, dtype), emission);
    return emission;
  }
  Source source("gemm/gemm.cuh");
  if (!p.a.has_several_strides()) source.input(0, problem.inputs[0], "A");
  source.input(1, b, "B");
  std::string body =
      gemm::declare_product(source, tile, gemm::tile_type(tile, dtype, p.a.major, p.b.major), p.m, p.n, p.k);
  body += gemm::load_left(source, problem, p, tile, emission);
  body += gemm::dense_loader(source, gemm::dense_operand(source, p, false), tile);
  gemm::finish(source, body, tile, gemm::ending_of(p, dtype), emission);
  return emission;
}

template <bool kMaps>
Matched match(const Problem& problem) {
  gemm::Product product;
  Problem own = problem;
  if (auto reason = gemm::take_normalization(own, product.normalization)) return refuse(*std::move(reason));
  if (auto reason = gemm::describe_product(own, product)) return refuse(*std::move(reason));
  if (product.normalization && !product.batch.empty()) return refuse("normalised results of several matrices");
  return match_form(problem, std::move(product), configs<kMaps>, emit);
}

}  // namespace

Matched match_gemm(const Problem& problem) { return match<true>(problem); }

// Where the second factor is in the workspace, which maps of the copy engine cannot name.
Matched match_gemm_in_workspace(const Problem& problem) { return match<false>(problem); }

}  // namespace lathe::cuda
