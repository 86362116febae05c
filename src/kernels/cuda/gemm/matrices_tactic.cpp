// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/matrices_tactic.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cuda/gemm/collapsed_tactic.h"
#include "kernels/cuda/source.h"
#include "kernels/pack_tactic.h"
#include "shape/broadcast.h"

namespace lathe::cuda::gemm {
namespace {

constexpr int64_t kVectorBytes = 16;

// Dims and strides of an operand as a stack of matrices; strides of dimensions that broadcast are 0.
struct Stack {
  Shape batch, batch_strides;
  Expr rows = 1, columns = 1, row_stride, column_stride;
};

Stack as_stack(const Operand& operand, bool left, bool transpose, const Shape& batch) {
  Stack stack;
  const size_t rank = operand.dims.size();
  stack.batch_strides.assign(batch.size(), Expr(0));
  if (rank == 1) {
    (left ? stack.columns : stack.rows) = operand.dims[0];
    (left ? stack.column_stride : stack.row_stride) = operand.strides[0];
    return stack;
  }
  const size_t row = rank - (transpose ? 1 : 2), column = rank - (transpose ? 2 : 1);
  stack.rows = operand.dims[row], stack.row_stride = operand.strides[row];
  stack.columns = operand.dims[column], stack.column_stride = operand.strides[column];
  for (size_t d = 0; d + 2 < rank; ++d)
    stack.batch_strides[batch.size() - (rank - 2) + d] =
        broadcast_stride(operand.dims[d], batch[batch.size() - (rank - 2) + d], operand.strides[d]);
  return stack;
}

// Gives the output and the operands a dimension of 1 where a vector operand left one out.
void add_vector_dims(const Problem& problem, Problem& out) {
  const bool no_n = problem.inputs[1].rank() == 1, no_m = problem.inputs[0].rank() == 1;
  if (!no_n && !no_m) return;
  for (Operand& operand : out.operands) operand = broadcast(operand, problem.outputs[0]);
  const auto complete = [&](Operand& operand) {
    if (no_n) operand.append_dim({});
    if (no_m) operand.insert_dim(operand.dims.size() - 1, {});
  };
  for (Operand& operand : out.operands) complete(operand);
  complete(out.outputs[0]);
}

// Batch dimensions that A merely continues its rows with, and B does not have, are rows.
void fold_batch(Product& p, Stack& a, const Stack& b) {
  while (!p.batch.empty() && b.batch_strides[p.batch.size() - 1] == Expr(0)) {
    const Expr &extent = p.batch.back(), &stride = a.batch_strides.back();
    if (extent != Expr(1)) {
      if (stride == Expr(0) || (p.m != Expr(1) && stride != a.row_stride * p.m)) return;
      if (p.m == Expr(1)) a.row_stride = stride;
    }
    p.m *= extent;
    p.batch.pop_back();
    a.batch_strides.pop_back();
  }
}

// The same of rows with several strides: the batch dimensions become further axes of them.
void fold_batch(Product& p, Stack& a, const Stack& b, CollapsedDim& rows) {
  while (!p.batch.empty() && b.batch_strides[p.batch.size() - 1] == Expr(0)) {
    const StridedAxis axis{p.batch.back(), a.batch_strides.back()};
    if (axis.extent != Expr(1) && axis.stride == Expr(0)) return;
    rows.prepend(axis);
    p.m *= axis.extent;
    p.batch.pop_back();
    a.batch_strides.pop_back();
  }
}

// Constant B as it is packed.
std::optional<std::string> pack_strides(const Operand& b, Stack& right, const Product& p) {
  if (!p.n.is_constant() || !p.k.is_constant()) return "constant weights of dynamic extents";
  const int64_t vector = kVectorBytes / static_cast<int64_t>(size_of(b.dtype));
  right.row_stride = 1;
  right.column_stride = ceildiv(p.k, vector) * vector;
  Expr stride = right.column_stride * p.n;
  for (size_t d = b.dims.size() > 2 ? b.dims.size() - 2 : 0, i = p.batch.size(); d-- > 0;) {
    --i;
    right.batch_strides[i] = broadcast_stride(b.dims[d], p.batch[i], stride);
    stride *= b.dims[d];
  }
  return std::nullopt;
}

// Operands that had better be copied than read in another order.
std::optional<std::string> refuse_order(const Problem& problem, const Product& p) {
  constexpr int64_t kLeastBytes = 8;
  for (size_t i = 0; i < 2; ++i) {
    const Operand& operand = problem.inputs[i];
    const Matrix& matrix = i == 0 ? p.a : p.b;
    if (operand.reassociation.empty()) continue;
    if (matrix.major == Major::mn && has_tensor_core(problem, Major::k) && !has_tensor_core(problem, Major::mn))
      return "operands in another order whose neighbours are not along K";
    const auto size = static_cast<int64_t>(size_of(operand.dtype));
    const bool copy_has_vectors = mod(whole_dims(operand).back() * size, kLeastBytes) == Expr(0);
    if (matrix.width * size < kLeastBytes && copy_has_vectors)
      return "operands in another order whose rows no vector fits";
  }
  return std::nullopt;
}

}  // namespace

bool describe(const Operand& operand, const Expr& outer, const Expr& outer_stride, const Expr& k, const Expr& k_stride,
              const Shape& batch_strides, Matrix& out) {
  out.batch_strides = batch_strides;
  out.major = Major::k;
  if (k_stride == Expr(1) || k == Expr(1)) {
    out.pitch = outer == Expr(1) ? Expr(0) : outer_stride;
  } else if (outer_stride == Expr(1) || outer == Expr(1)) {
    out.major = Major::mn;
    out.pitch = k_stride;
  } else {
    return false;
  }
  Shape strides = batch_strides;
  strides.push_back(out.pitch);
  strides.push_back(operand.offset);
  out.width = copy_width(operand.dtype, strides);
  return true;
}

namespace {

std::optional<std::string> describe_left(const Problem& problem, const CollapsedOperand& a, Stack& left, Stack& right,
                                         Product& out) {
  if (a.has_several_strides()) {
    const size_t rank = a.dims.size();
    if (rank == 1) return "a collapsed vector";
    const bool transposed = problem.attrs<MatmulAttrs>().transpose_a;
    CollapsedDim rows = a.dims[rank - (transposed ? 1 : 2)];
    for (size_t d = 0; d + 2 < rank; ++d)
      if (a.dims[d].axes.size() > 1) return "collapsed dimensions of a batch";
    fold_batch(out, left, right, rows);
    return describe_collapsed(a.whole, std::move(rows), a.dims[rank - (transposed ? 2 : 1)], left.batch_strides, out.a);
  }
  fold_batch(out, left, right);
  if (!describe(a.whole, out.m, left.row_stride, out.k, left.column_stride, left.batch_strides, out.a))
    return "neither dimension of the first operand's matrices is contiguous";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> describe(const Problem& given, Product& out) {
  if (given.is(OpKind::einsum) && !given.outputs[0].reassociation.empty()) return "a collapsed result of an einsum";
  if (given.is(OpKind::einsum)) return describe_einsum(given, out);
  if (!given.is(OpKind::matmul)) return "not a matrix product";
  const CollapsedOperand collapsed_a(given.inputs[0]), collapsed_b(given.inputs[1]);
  if (collapsed_b.has_several_strides()) return "collapsed dimensions of the second operand";
  Problem problem = given;
  problem.inputs[0] = collapsed_a.whole, problem.inputs[1] = collapsed_b.whole;
  const auto& attrs = problem.attrs<MatmulAttrs>();
  const Operand &a = problem.inputs[0], &b = problem.inputs[1];
  if (!problem.outputs[0].reassociation.empty() && (a.rank() == 1 || b.rank() == 1))
    return "a collapsed result of vectors";
  if (auto reason = refuse_columns(problem.outputs[0])) return reason;
  if (auto reason = refuse_pairs(problem)) return reason;
  out.problem = problem;
  add_vector_dims(problem, out.problem);
  const Shape dims = whole_dims(out.problem.outputs[0]);
  if (dims.size() > 8) return "more than 8 dimensions";
  out.batch.assign(dims.begin(), dims.end() - 2);
  Stack left = as_stack(a, true, attrs.transpose_a && a.rank() > 1, out.batch);
  Stack right = as_stack(b, false, attrs.transpose_b && b.rank() > 1, out.batch);
  out.m = left.rows, out.k = right.rows.is_constant() ? right.rows : left.columns, out.n = right.columns;
  const int64_t columns = a.opt_dims[a.opt_dims.size() - (attrs.transpose_a && a.rank() > 1 ? 2 : 1)];
  out.opt_k = out.k.as_constant().value_or(columns);
  out.weights = b.constant != nullptr;
  if (out.weights) {
    if (auto reason = pack_strides(b, right, out)) return reason;
  }
  if (auto reason = describe_left(problem, collapsed_a, left, right, out)) return reason;
  right.batch_strides.resize(out.batch.size());
  if (!describe(b, out.n, right.column_stride, out.k, right.row_stride, right.batch_strides, out.b))
    return "neither dimension of the second operand's matrices is contiguous";
  return refuse_order(given, out);
}

Extent extent_of(const Problem& problem, const Product& p) {
  Extent e = extent_of(problem, p.a.major, p.b.major);
  const Dims out = opt_whole_dims(p.problem.outputs[0]);
  e.n = out.back() * (problem.pairs ? 2 : 1);
  e.k = p.opt_k;
  e.copy_width = p.a.has_several_strides() ? p.a.width : 0;
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < out.size(); ++d) rows *= out[d];
  for (size_t d = 0; d < p.batch.size(); ++d) e.batch *= out[d];
  e.m = e.batch == 0 ? 0 : rows / e.batch;
  return e;
}

std::string batch_offset(Source& source, const Product& p, const Matrix& matrix) {
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

Result<Packed> pack_weights(const Problem& problem) {
  const Tensor& b = *problem.inputs[1].constant;
  const auto rank = b.dims().size();
  const bool transposed = problem.attrs<MatmulAttrs>().transpose_b && rank > 1;
  const int64_t k = rank == 1 ? b.dims()[0] : b.dims()[rank - (transposed ? 1 : 2)];
  const int64_t n = rank == 1 ? 1 : b.dims()[rank - (transposed ? 2 : 1)];
  const int64_t pitch = round_up(k, kVectorBytes / static_cast<int64_t>(size_of(b.dtype())));
  const int64_t batch = k * n == 0 ? 0 : b.volume() / (k * n);
  return pack(Known{b, nullptr}, {batch, n, pitch},
              {{batch, k * n, n * pitch}, {n, transposed ? k : 1, pitch}, {k, transposed ? 1 : n, 1}});
}

}  // namespace lathe::cuda::gemm
