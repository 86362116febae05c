// SPDX-License-Identifier: Apache-2.0
// Matrix products by tiles, on tensor cores where the type allows.
#include "kernels/cuda/gemm/parts_tactic.h"
#include "kernels/cuda/gemm/prologue_tactic.h"
#include "kernels/cuda/gemm/tile_tactic.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using gemm::Tile;

// The element at the batch's first row and column, as text.
std::string batch_offset(Source& source, const Product& p, const gemm::Matrix& matrix) {
  std::string text;
  for (size_t d = 0; d < p.batch.size(); ++d) {
    if (matrix.batch_strides[d] == Expr(0)) continue;
    Expr inner = 1;
    for (size_t i = d + 1; i < p.batch.size(); ++i) inner *= p.batch[i];
    text += fmt::format(" + batch / {} % {} * {}", source.number(inner), source.number(p.batch[d]),
                        source.number(matrix.batch_strides[d]));
  }
  return text;
}

gemm::DenseOperand dense_operand(Source& source, const Product& p, bool first) {
  const gemm::Matrix& matrix = first ? p.a : p.b;
  return {first ? "a" : "b",
          first ? "A" : "B",
          batch_offset(source, p, matrix),
          matrix.pitch,
          matrix.width,
          matrix.across,
          first ? p.m : p.n,
          p.k};
}

class GemmTactic final : public Tactic {
 public:
  std::string_view name() const override { return "gemm"; }
  bool takes_prologue(size_t input) const override { return input == 0; }
  bool writes_parts() const override { return true; }
  bool reads_parts(size_t input) const override { return input < 2; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (problem.outputs.size() != 1) return "several outputs";
    Product product;
    if (auto reason = gemm::describe(problem, product)) return reason;
    if (!problem.has_prologue()) return std::nullopt;
    const Operand& a = problem.inputs[0];
    if (product.a.across || !product.batch.empty() || a.rank() < 2 || !problem.is(OpKind::matmul))
      return "a program before matrices that are not rows of one";
    return gemm::refuse_prologue(problem, a.dims.size() - 1);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    Product product;
    gemm::describe(problem, product);  // refuse() has seen to it that this works
    return gemm::configs(gemm::extent_of(problem, product));
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    Product p;
    if (const auto refusal = gemm::describe(problem, p)) return fail(ErrorCode::internal, "gemm: {}", *refusal);
    const Tile tile = gemm::decode(config);
    Emission emission;
    emission.with_program = false;
    emission.inputs = {{StepInput::input, 0}, {p.weights ? StepInput::packed : StepInput::input, p.weights ? 0u : 1u}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    Operand b = problem.inputs[1];
    if (p.weights) {
      LATHE_ASSIGN(Tensor packed, gemm::pack_weights(problem));
      b = gemm::packed_operand(packed);
      emission.packed.push_back(std::move(packed));
    }
    Source source("gemm/gemm.cuh");
    if (!p.a.has_parts()) source.input(0, problem.inputs[0], "A");
    source.input(1, b, "B");
    std::string body = fmt::format("using Tile = {};\n  const long m = {}, n = {}, k = {};\n  ",
                                   gemm::tile_type(tile, problem.inputs[0].dtype, p.a.across, p.b.across),
                                   source.number(p.m), source.number(p.n), source.number(p.k));
    body += gemm::declare_block(tile);
    body += p.a.has_parts() ? gemm::parts_loader(source, problem.inputs[0], p.a, batch_offset(source, p, p.a))
                            : gemm::left_loader(source, problem, problem.inputs[0].dims.size() - 1,
                                                dense_operand(source, p, true), tile, emission);
    body += gemm::dense_loader(source, dense_operand(source, p, false), tile);
    gemm::Ending ending{p.problem, problem.inputs[0].dtype, p.problem.outputs[0].rank() - 1, p.m, p.n, volume(p.batch),
                        {}};
    ending.weights_first = p.weights;
    ending.parts = p.column_parts();
    gemm::finish(source, body, tile, ending, emission);
    return emission;
  }
};

}  // namespace

const Tactic& gemm_tactic() {
  static const GemmTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
