// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ops/indices.h"
#include "ops/rules.h"

namespace lathe {
namespace {

// One expert's matrix, as doubles.
Result<std::vector<double>> matrix_of(const Tensor& weights, int64_t expert) {
  const Dims dims = {weights.dims()[1], weights.dims()[2]};
  LATHE_ASSIGN(Tensor matrix, Tensor::allocate(weights.dtype(), dims));
  std::memcpy(matrix.mutable_data(),
              static_cast<const char*>(weights.data()) + static_cast<size_t>(expert) * matrix.bytes(), matrix.bytes());
  return to_doubles(matrix);
}

// y[n] = x[k] times the matrix, whose elements lie at k * k_stride + n * n_stride.
void multiply(const double* x, int64_t k, const double* matrix, int64_t k_stride, int64_t n_stride,
              std::span<double> y) {
  for (int64_t i = 0; i < k; ++i)
    for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * matrix[i * k_stride + static_cast<int64_t>(j) * n_stride];
}

}  // namespace

Result<> infer_expert_matmul(InferContext& context) {
  const auto& attrs = context.attrs<ExpertMatmulAttrs>();
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(require_same_dtype(context, 0, 1));
  LATHE_TRY(require_integer(context, 2));
  LATHE_TRY(require_rounding(attrs.factors));
  LATHE_TRY(require_rank(context, 0, 1, kMany));
  LATHE_TRY(require_rank(context, 1, 3, 3));
  const Shape &x = context.shape(0), &weights = context.shape(1);
  const Expr &k = weights[attrs.transpose_w ? 2 : 1], &n = weights[attrs.transpose_w ? 1 : 2];
  if (!context.assume_equal(x.back(), k))
    return fail(ErrorCode::shape_mismatch,
                "expert_matmul: rows of {} have {} elements, but matrices of {}{} have {} rows; they must be equal",
                to_string(x), x.back().to_string(), to_string(weights), attrs.transpose_w ? " (transposed)" : "",
                k.to_string());
  LATHE_ASSIGN(Shape shape, broadcast(context, Shape(x.begin(), x.end() - 1), context.shape(2)));
  shape.push_back(n);
  context.set(0, context.dtype(0), std::move(shape));
  return {};
}

Result<> eval_expert_matmul(EvalContext& context) {
  const auto& attrs = context.attrs<ExpertMatmulAttrs>();
  const Tensor &x = context.input(0), &weights = context.input(1), &ids = context.input(2);
  Tensor& output = context.output(0);
  const int64_t experts = weights.dims()[0], k = x.dims().back(), n = output.dims().back();
  Ints experts_of = to_ints(ids);
  if (attrs.strict) {
    LATHE_ASSIGN(experts_of, read_indices(ids, experts, "expert_matmul"));
  }
  const Dims dims(output.dims().begin(), output.dims().end() - 1);
  const Dims x_dims(x.dims().begin(), x.dims().end() - 1);
  Walk walk(dims, {broadcast_strides(x_dims, dims), broadcast_strides(ids.dims(), dims)});
  struct Row {
    int64_t x, expert;
  };
  std::vector<Row> rows(static_cast<size_t>(output.volume() / std::max<int64_t>(n, 1)));
  for (Row& row : rows) {
    row = {walk.offset(0), experts_of[static_cast<size_t>(walk.offset(1))]};
    walk.next();
  }
  std::vector<size_t> order(rows.size());  // by experts, so that each one's matrix is converted once
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t row) { return rows[row].expert; });
  const std::vector<double> of_x = to_doubles(x);
  std::vector<double> y(static_cast<size_t>(output.volume())), matrix;
  int64_t last = -1;
  for (const size_t row : order) {
    const int64_t expert = rows[row].expert;
    if (expert < 0 || expert >= experts) continue;
    if (expert != last) {
      LATHE_ASSIGN(matrix, matrix_of(weights, expert));
      last = expert;
    }
    multiply(of_x.data() + rows[row].x * k, k, matrix.data(), attrs.transpose_w ? 1 : n, attrs.transpose_w ? k : 1,
             std::span(y).subspan(row * static_cast<size_t>(n), static_cast<size_t>(n)));
  }
  from_doubles(y, output);
  return {};
}

}  // namespace lathe
