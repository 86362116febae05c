// SPDX-License-Identifier: Apache-2.0
// Matrix products by tiles, on tensor cores where the type allows.
#include "kernels/cuda/gemm/collapsed_tactic.h"
#include "kernels/cuda/gemm/prologue_tactic.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using gemm::TileShape;

class GemmMatch final : public Match {
 public:
  GemmMatch(const Problem& problem, Product product) : problem_(problem), p_(std::move(product)) {}

  std::vector<Config> configs() const override { return gemm::configs(gemm::extent_of(problem_, p_)); }

  Result<Emission> emit(const Config& config) const override {
    const auto& tile = config.as<TileShape>();
    const DType dtype = problem_.inputs[0].dtype;
    Emission emission;
    emission.with_program = false;
    emission.inputs = {{StepInput::input, 0},
                       {p_.weights ? StepInput::packed : StepInput::input, p_.weights ? 0u : 1u}};
    add_operand_inputs(problem_, emission);
    Operand b = problem_.inputs[1];
    if (p_.weights) {
      LATHE_ASSIGN(Tensor packed, gemm::pack_weights(problem_));
      b = gemm::packed_operand(packed);
      emission.packed.push_back(std::move(packed));
    }
    Source source("gemm/gemm.cuh");
    if (!p_.a.has_several_strides()) source.input(0, problem_.inputs[0], "A");
    source.input(1, b, "B");
    std::string body =
        gemm::declare_product(source, tile, gemm::tile_type(tile, dtype, p_.a.major, p_.b.major), p_.m, p_.n, p_.k);
    body += p_.a.has_several_strides()
                ? gemm::collapsed_loader(source, problem_.inputs[0], p_.a, batch_offset(source, p_.a))
                : gemm::left_loader(source, problem_, problem_.inputs[0].dims.size() - 1, dense_operand(source, true),
                                    tile, emission);
    body += gemm::dense_loader(source, dense_operand(source, false), tile);
    gemm::Ending ending{p_.problem, dtype, p_.problem.outputs[0].rank() - 1, p_.m, p_.n, volume(p_.batch), {}};
    ending.weights_first = p_.weights;
    ending.column_dims = p_.column_dims();
    gemm::finish(source, body, tile, ending, emission);
    return emission;
  }

 private:
  // The element at the batch's first row and column, as text.
  std::string batch_offset(Source& source, const gemm::Matrix& matrix) const {
    std::string text;
    for (size_t d = 0; d < p_.batch.size(); ++d) {
      if (matrix.batch_strides[d] == Expr(0)) continue;
      Expr inner = 1;
      for (size_t i = d + 1; i < p_.batch.size(); ++i) inner *= p_.batch[i];
      text += fmt::format(" + batch / {} % {} * {}", source.number(inner), source.number(p_.batch[d]),
                          source.number(matrix.batch_strides[d]));
    }
    return text;
  }

  gemm::DenseOperand dense_operand(Source& source, bool first) const {
    const gemm::Matrix& matrix = first ? p_.a : p_.b;
    return {first ? "a" : "b", first ? "A" : "B", batch_offset(source, matrix), matrix.pitch,
            matrix.width,      matrix.major,      first ? p_.m : p_.n,          p_.k};
  }

  const Problem& problem_;
  Product p_;
};

}  // namespace

Matched match_gemm(const Problem& problem) {
  const Features supported{.reassociated_result = true, .reassociated_inputs = 3, .prologues = 1};
  if (auto reason = unsupported_feature(problem, supported)) return refuse(*std::move(reason));
  Product product;
  if (auto reason = gemm::describe(problem, product)) return refuse(*std::move(reason));
  if (problem.inputs[0].is_computed()) {
    const Operand& a = problem.inputs[0];
    if (product.a.major == gemm::Major::mn || !product.batch.empty() || a.rank() < 2 || !problem.is(OpKind::matmul))
      return refuse("a program before matrices that are not rows of one");
    if (auto reason = gemm::refuse_prologue(problem, a.dims.size() - 1)) return refuse(*std::move(reason));
  }
  return std::make_unique<GemmMatch>(problem, std::move(product));
}

}  // namespace lathe::cuda
