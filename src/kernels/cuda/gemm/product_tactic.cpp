// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/product_tactic.h"

#include "kernels/cuda/gemm/collapsed_tactic.h"
#include "kernels/cuda/gemm/prologue_tactic.h"

namespace lathe::cuda::gemm {
namespace {

// With so many rows at most, reading the weights takes longer than multiplying: an H200 brings a weight of 16 bits from
// memory in the time of some 200 products, and tiles of few rows reach a part of that.
constexpr int64_t kStreamingRows = 64;

}  // namespace

std::optional<std::string> describe_product(const Problem& problem, Product& out) {
  const Features supported{
      .reassociated_result = true, .pairs = true, .reassociated_inputs = 3, .prologues = 1, .float8 = true};
  if (auto reason = unsupported_feature(problem, supported)) return reason;
  if (auto reason = describe(problem, out)) return reason;
  if (is_factor_float8(problem.inputs[0].dtype) &&
      !(has_tensor_core(problem, out.a.major) && has_tensor_core(problem, out.b.major)))
    return "8-bit floats that no matrix units multiply";
  const Operand& a = problem.inputs[0];
  if (!a.is_computed()) return std::nullopt;
  if (out.a.major == Major::mn || !out.batch.empty() || a.rank() < 2 || !problem.is(OpKind::matmul))
    return "a program before matrices that are not rows of one";
  return refuse_prologue(problem, a.dims.size() - 1);
}

Ending ending_of(const Product& p, DType dtype) {
  Ending ending{p.problem, dtype, p.problem.outputs[0].rank() - 1, p.m, p.n, volume(p.batch), {}};
  ending.weights_first = p.weights;
  if (p.weights && extent_of(p.problem, p).m <= kStreamingRows) ending.next_begins = "kAtOnce";
  ending.column_dims = p.column_dims();
  if (p.normalization) ending.normalization = &*p.normalization;
  return ending;
}

DenseOperand dense_operand(Source& source, const Product& p, bool first) {
  const Matrix& matrix = first ? p.a : p.b;
  return {first ? "a" : "b",
          first ? "A" : "B",
          batch_offset(source, p, matrix),
          matrix.pitch,
          matrix.width,
          matrix.major,
          first ? p.m : p.n,
          p.k};
}

std::string load_left(Source& source, const Problem& problem, const Product& p, const TileShape& tile,
                      Emission& emission) {
  const Operand& a = problem.inputs[0];
  if (p.a.has_several_strides()) return collapsed_loader(source, a, p.a, batch_offset(source, p, p.a));
  return left_loader(source, problem, a.dims.size() - 1, dense_operand(source, p, true), tile, emission);
}

}  // namespace lathe::cuda::gemm
