// SPDX-License-Identifier: Apache-2.0
// Gaussian elimination with partial pivoting, in doubles.
#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace lathe {
namespace {

double determinant_of(std::span<double> a, size_t n) {
  double product = 1;
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i)
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
    if (pivot != k) {
      std::swap_ranges(&a[k * n], &a[k * n] + n, &a[pivot * n]);
      product = -product;
    }
    product *= a[k * n + k];
    if (a[k * n + k] == 0) break;
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (size_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return product;
}

}  // namespace

Result<> infer_determinant(InferContext& context) {
  LATHE_TRY(require_floating(context, 0));
  LATHE_TRY(require_rank(context, 0, 2, INT32_MAX));
  Shape shape = context.shape(0);
  const Expr rows = shape[shape.size() - 2], columns = shape.back();
  if (!context.assume_equal(rows, columns))
    return fail(ErrorCode::shape_mismatch, "determinant: matrices of {} have {} rows, but {} columns",
                to_string(context.shape(0)), rows.to_string(), columns.to_string());
  shape.resize(shape.size() - 2);
  context.set(0, context.dtype(0), std::move(shape));
  return {};
}

Result<> eval_determinant(EvalContext& context) {
  const Tensor& x = context.input(0);
  const auto n = static_cast<size_t>(x.dims().back());
  std::vector<double> elements = to_doubles(x), results(static_cast<size_t>(context.output(0).volume()));
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = determinant_of(std::span(elements).subspan(i * n * n, n * n), n);
  from_doubles(results, context.output(0));
  return {};
}

}  // namespace lathe
