// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {
namespace {

// The operand as a stack of matrices: dims before the last two, rows, columns (a vector gets a 1, as ONNX says).
template <class D>
struct Matrix {
  std::vector<D> batch;
  D rows{1};
  D columns{1};
};

// `left`: the first operand, whose vector is a row; the second's is a column. Vectors are not transposed.
template <class D>
Matrix<D> as_matrix(const std::vector<D>& dims, bool left, bool transpose) {
  const size_t rank = dims.size();
  if (rank == 1) return left ? Matrix<D>{{}, D(1), dims[0]} : Matrix<D>{{}, dims[0], D(1)};
  Matrix<D> matrix{{dims.begin(), dims.end() - 2}, dims[rank - 2], dims[rank - 1]};
  if (transpose) std::swap(matrix.rows, matrix.columns);
  return matrix;
}

// One matrix product with T holding exact products' sums: double, or uint64_t for integers (wraps).
template <class T>
void multiply(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k) {
  std::fill(c, c + m * n, T{0});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
}

// A copy whose matrices are stored untransposed.
template <class T>
std::vector<T> transposed(const std::vector<T>& values, int64_t rows, int64_t columns) {
  std::vector<T> out(values.size());
  const int64_t area = rows * columns;
  for (int64_t base = 0; area > 0 && base < static_cast<int64_t>(values.size()); base += area)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) out[base + r * columns + c] = values[base + c * rows + r];
  return out;
}

template <class T>
std::vector<T> evaluate(EvalContext& context, std::vector<T> a, std::vector<T> b) {
  const MatmulAttrs& attrs = context.attrs<MatmulAttrs>();
  const Dims &a_dims = context.input(0).dims(), &b_dims = context.input(1).dims();
  const Matrix<int64_t> left = as_matrix(a_dims, true, attrs.transpose_a);
  const Matrix<int64_t> right = as_matrix(b_dims, false, attrs.transpose_b);
  if (attrs.transpose_a && a_dims.size() > 1) a = transposed(a, left.rows, left.columns);
  if (attrs.transpose_b && b_dims.size() > 1) b = transposed(b, right.rows, right.columns);
  const Dims batch = broadcast_dims(left.batch, right.batch);
  const int64_t m = left.rows, n = right.columns, k = left.columns;
  std::vector<T> c(static_cast<size_t>(context.output(0).volume()));
  if (c.empty()) return c;
  Walk walk(batch, {broadcast_strides(left.batch, batch), broadcast_strides(right.batch, batch)});
  for (T* target = c.data(); target != c.data() + c.size(); target += m * n, walk.next())
    multiply(a.data() + walk.offset(0) * m * k, b.data() + walk.offset(1) * k * n, target, m, n, k);
  return c;
}

}  // namespace

Result<> infer_matmul(InferContext& context) {
  const MatmulAttrs& attrs = context.attrs<MatmulAttrs>();
  LATHE_TRY(require_numeric(context, 0));
  LATHE_TRY(require_factors(context, 0, 1));
  LATHE_TRY(require_rounding(attrs.factors));
  LATHE_TRY(require_rank(context, 0, 1, kMany));
  LATHE_TRY(require_rank(context, 1, 1, kMany));
  const Matrix<Expr> left = as_matrix(context.shape(0), true, attrs.transpose_a);
  const Matrix<Expr> right = as_matrix(context.shape(1), false, attrs.transpose_b);
  if (!context.assume_equal(left.columns, right.rows))
    return fail(ErrorCode::shape_mismatch,
                "input 0 of shape {}{} has {} columns, but input 1 of shape {}{} has {} rows; they must be equal",
                to_string(context.shape(0)), attrs.transpose_a ? " (transposed)" : "", left.columns.to_string(),
                to_string(context.shape(1)), attrs.transpose_b ? " (transposed)" : "", right.rows.to_string());
  LATHE_ASSIGN(Shape shape, broadcast(context, left.batch, right.batch));
  if (context.rank(0) > 1) shape.push_back(left.rows);
  if (context.rank(1) > 1) shape.push_back(right.columns);
  context.set(0, sum_dtype(context.dtype(0)), std::move(shape));
  return {};
}

Result<> eval_matmul(EvalContext& context) {
  const Tensor &a = context.input(0), &b = context.input(1);
  if (is_floating(a.dtype()) || is_factor_float8(a.dtype())) {
    from_doubles(evaluate(context, to_doubles(a), to_doubles(b)), context.output(0));
    return {};
  }
  // Unsigned arithmetic wraps without undefined behaviour and gives the same low bits.
  const std::vector<int64_t> x = to_ints(a), y = to_ints(b);
  const std::vector<uint64_t> c = evaluate<uint64_t>(context, {x.begin(), x.end()}, {y.begin(), y.end()});
  from_ints(std::vector<int64_t>(c.begin(), c.end()), context.output(0));
  return {};
}

}  // namespace lathe
