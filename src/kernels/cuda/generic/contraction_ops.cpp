// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/attention/logits.h"
#include "kernels/cuda/generic/op_source.h"
#include "ops/subscripts.h"
#include "shape/broadcast.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kHeader = "generic/contractions.cuh";

// The operand as a stack of matrices with `batch` dims. A vector is a row (left) or a column.
Operand as_matrices(const Operand& operand, bool left, bool transpose, const Operand& out, size_t batch) {
  const size_t rank = operand.dims.size();
  Operand matrices = operand;
  matrices.dims = Shape(out.dims.begin(), out.dims.begin() + static_cast<ptrdiff_t>(batch));
  matrices.strides.assign(batch, 0);
  if (rank == 1) {
    matrices.dims.insert(matrices.dims.end(), {left ? Expr(1) : operand.dims[0], left ? operand.dims[0] : Expr(1)});
    matrices.strides.insert(matrices.strides.end(),
                            {left ? Expr(0) : operand.strides[0], left ? operand.strides[0] : Expr(0)});
    return matrices;
  }
  const size_t own = rank - 2;
  for (size_t i = 0; i < own; ++i)
    matrices.strides[batch - own + i] =
        broadcast_stride(operand.dims[i], matrices.dims[batch - own + i], operand.strides[i]);
  const size_t rows = transpose ? rank - 1 : rank - 2, columns = transpose ? rank - 2 : rank - 1;
  matrices.dims.insert(matrices.dims.end(), {operand.dims[rows], operand.dims[columns]});
  matrices.strides.insert(matrices.strides.end(), {operand.strides[rows], operand.strides[columns]});
  return matrices;
}

Result<Emission> emit_matmul(const Problem& problem) {
  const auto& attrs = problem.attrs<MatmulAttrs>();
  const Operand &a = problem.inputs[0], &b = problem.inputs[1], &out = problem.outputs[0];
  const bool row = a.rank() > 1, column = b.rank() > 1;
  const size_t batch = out.dims.size() - (row ? 1 : 0) - (column ? 1 : 0);
  Emission emission;
  OpSource source(kHeader, problem, emission);
  const std::string fusion = source.fusion();
  const std::string left = source.input_as(0, as_matrices(a, true, attrs.transpose_a, out, batch));
  const std::string right = source.input_as(1, as_matrices(b, false, attrs.transpose_b, out, batch));
  source.finish(fmt::format("matmul<{}, {}, {}>({}, {}, {}, {});", row, column, sum_type(problem.inputs[0].dtype),
                            fusion, left, right, source.output(0)),
                volume(out.dims));
  return emission;
}

Result<Emission> emit_expert_matmul(const Problem& problem) {
  const auto& attrs = problem.attrs<ExpertMatmulAttrs>();
  const Operand &x = problem.inputs[0], &out = problem.outputs[0];
  Operand rows = out;
  rows.take_out_dim(out.dims.size() - 1);
  const Operand ids = broadcast(problem.inputs[2], rows);
  rows.append_dim(x.dim(x.dims.size() - 1));
  Emission emission;
  OpSource source(kHeader, problem, emission);
  const std::string fusion = source.fusion(), left = source.input_as(0, broadcast(x, rows)), right = source.input(1);
  source.finish(fmt::format("expert_matmul<{}, {}, {}>({}, {}, {}, {}, {});", attrs.transpose_w, attrs.strict,
                            sum_type(x.dtype), fusion, left, right, source.input_as(2, ids), source.output(0)),
                volume(out.dims));
  return emission;
}

// For each label the sum of the strides of the dims that carry it, which broadcast to its extent.
Shape label_strides(const Operand& operand, const std::vector<Label>& own, const std::vector<Label>& labels,
                    const Shape& extents) {
  Shape strides(labels.size(), 0);
  for (size_t d = 0; d < own.size(); ++d) {
    const auto at = static_cast<size_t>(std::find(labels.begin(), labels.end(), own[d]) - labels.begin());
    strides[at] += broadcast_stride(operand.dims[d], extents[at], operand.strides[d]);
  }
  return strides;
}

Result<Emission> emit_einsum(const Problem& problem) {
  const std::string& equation = problem.attrs<EinsumAttrs>().equation;
  std::vector<int64_t> ranks;
  for (const Operand& input : problem.inputs) ranks.push_back(input.rank());
  LATHE_ASSIGN(const Subscripts subscripts, parse_subscripts(equation, ranks));
  LATHE_ASSIGN(const std::vector<Label> labels, all_labels(subscripts, equation));
  Shape extents(labels.size(), 1);
  for (size_t k = 0; k < problem.inputs.size(); ++k)
    for (size_t d = 0; d < subscripts.operands[k].size(); ++d) {
      const auto at = std::find(labels.begin(), labels.end(), subscripts.operands[k][d]) - labels.begin();
      Expr& extent = extents[static_cast<size_t>(at)];
      extent = broadcast_dim(extent, problem.inputs[k].dims[d]);
    }
  Emission emission;
  OpSource source(kHeader, problem, emission);
  const std::string fusion = source.fusion(), extent_list = source.list("Extents", extents), out = source.output(0);
  std::string operands;
  for (size_t k = 0; k < problem.inputs.size(); ++k) {
    const std::string in = source.input(k);
    operands += fmt::format(", labelled({}, {})", in,
                            source.list(fmt::format("Strides{}", k),
                                        label_strides(problem.inputs[k], subscripts.operands[k], labels, extents)));
  }
  source.finish(fmt::format("einsum<{}, {}>({}, {}, {}{});", labels.size(), sum_type(problem.inputs[0].dtype), fusion,
                            extent_list, out, operands),
                volume(problem.outputs[0].dims));
  return emission;
}

Result<Emission> emit_attention(const Problem& problem) {
  using namespace attention_input;
  Emission emission;
  OpSource source("generic/attention.cuh", problem, emission);
  const std::string fusion = source.fusion(), q = source.input(kQ), k = source.input(kK), v = source.input(kV);
  const std::string mask = source.has(kMask) ? source.input_as(kMask, mask_of_scores(problem)) : "Unmasked{}";
  const std::string sinks = source.has(kSinks) ? source.input(kSinks) : "Unsunk{}";
  const std::string distances =
      source.has(kDistances) ? source.input_as(kDistances, distances_of_heads(problem)) : "Undistanced{}";
  const bool is_float8 = problem.attrs<AttentionAttrs>().factors == DType::f8e4m3fn;
  source.finish(fmt::format("attention<Attributes, {}>({}, {}, {}, {}, {}, {}, {}, {});", is_float8, fusion, q, k, v,
                            mask, sinks, distances, source.output(0)),
                volume(problem.outputs[0].dims));
  return emission;
}

Result<Emission> emit_determinant(const Problem& problem) {
  Emission emission;
  emission.workspace = volume(problem.inputs[0].dims) * static_cast<int64_t>(sizeof(double));
  OpSource source("generic/determinant.cuh", problem, emission);
  const std::string x = source.input(0);
  source.source().workspace("work", 0, "double");
  source.finish(fmt::format("determinant({}, work, {});", x, source.output(0)), volume(problem.outputs[0].dims));
  return emission;
}

}  // namespace

std::span<const GenericOp> contraction_ops() {
  static constexpr GenericOp kOps[] = {
      {OpKind::matmul, emit_matmul, true},     {OpKind::expert_matmul, emit_expert_matmul, true},
      {OpKind::einsum, emit_einsum, true},     {OpKind::attention, emit_attention, true},
      {OpKind::determinant, emit_determinant},
  };
  return kOps;
}

}  // namespace lathe::cuda
