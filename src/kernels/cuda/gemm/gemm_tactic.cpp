// SPDX-License-Identifier: Apache-2.0
// Matrix products by tiles, on tensor cores where the type allows.
#include "kernels/cuda/gemm/collapsed_tactic.h"
#include "kernels/cuda/gemm/pipeline_tactic.h"
#include "kernels/cuda/gemm/prologue_tactic.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using gemm::TileShape;

gemm::Ending ending_of(const Product& p, DType dtype) {
  gemm::Ending ending{p.problem, dtype, p.problem.outputs[0].rank() - 1, p.m, p.n, volume(p.batch), {}};
  ending.weights_first = p.weights;
  ending.column_dims = p.column_dims();
  return ending;
}

gemm::DenseOperand dense_operand(Source& source, const Product& p, bool first) {
  const gemm::Matrix& matrix = first ? p.a : p.b;
  return {first ? "a" : "b",
          first ? "A" : "B",
          gemm::batch_offset(source, p, matrix),
          matrix.pitch,
          matrix.width,
          matrix.major,
          first ? p.m : p.n,
          p.k};
}

std::vector<Config> configs(const Problem& problem, const Product& p) {
  gemm::Extent extent = gemm::extent_of(problem, p);
  extent.copied = gemm::can_copy(problem, p, ending_of(p, problem.inputs[0].dtype));
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
    b = packed_operand(packed.content);
    emission.packed.push_back(std::move(packed));
  }
  if (tile.unit == TileShape::pipeline) {
    gemm::finish_pipeline(problem, p, tile, ending_of(p, dtype), emission);
    return emission;
  }
  Source source("gemm/gemm.cuh");
  if (!p.a.has_several_strides()) source.input(0, problem.inputs[0], "A");
  source.input(1, b, "B");
  std::string body =
      gemm::declare_product(source, tile, gemm::tile_type(tile, dtype, p.a.major, p.b.major), p.m, p.n, p.k);
  body += p.a.has_several_strides()
              ? gemm::collapsed_loader(source, problem.inputs[0], p.a, gemm::batch_offset(source, p, p.a))
              : gemm::left_loader(source, problem, problem.inputs[0].dims.size() - 1, dense_operand(source, p, true),
                                  tile, emission);
  body += gemm::dense_loader(source, dense_operand(source, p, false), tile);
  gemm::finish(source, body, tile, ending_of(p, dtype), emission);
  return emission;
}

}  // namespace

Matched match_gemm(const Problem& problem) {
  const Features supported{
      .reassociated_result = true, .mixed_factors = true, .reassociated_inputs = 3, .prologues = 1};
  if (auto reason = unsupported_feature(problem, supported)) return refuse(*std::move(reason));
  Product product;
  if (auto reason = gemm::describe(problem, product)) return refuse(*std::move(reason));
  const bool is_mixed = problem.inputs[0].dtype != problem.inputs[1].dtype;
  if (is_mixed && !(gemm::has_tensor_core(problem, product.a.major) && gemm::has_tensor_core(problem, product.b.major)))
    return refuse("factors of two types that do not both run along K, or are not u8 by i8");
  if (problem.inputs[0].is_computed()) {
    const Operand& a = problem.inputs[0];
    if (product.a.major == gemm::Major::mn || !product.batch.empty() || a.rank() < 2 || !problem.is(OpKind::matmul))
      return refuse("a program before matrices that are not rows of one");
    if (auto reason = gemm::refuse_prologue(problem, a.dims.size() - 1)) return refuse(*std::move(reason));
  }
  return match_form(problem, std::move(product), configs, emit);
}

}  // namespace lathe::cuda
