// SPDX-License-Identifier: Apache-2.0
// Products with matrices of sines and cosines. Angles are multiples of one turn over `points`, reduced before they are
// rounded. Of known sizes the matrix is a constant; of others it is computed with the rest.
#include "compose/fourier.h"

#include <cmath>
#include <numbers>

#include "compose/count_up.h"
#include "ir/known_content.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

bool gives_reals(const FourierTransform& how) { return how.inverse && how.onesided; }

int64_t results_of(const FourierTransform& how) { return gives_reals(how) ? 1 : 2; }

struct Sizes {
  int64_t points = 0, inputs = 0, bins = 0;
};

// [inputs * parts, bins * results]. Inputs behind those of an inverse to real numbers are the conjugates of those
// before.
std::vector<double> matrix_of(const FourierTransform& how, const Sizes& sizes) {
  const int64_t results = results_of(how), columns = sizes.bins * results;
  std::vector<double> matrix(static_cast<size_t>(sizes.inputs * how.parts * columns));
  for (int64_t n = 0; n < sizes.inputs; ++n) {
    const bool is_twice = gives_reals(how) && n > 0 && 2 * n < sizes.points;
    const double scale = (how.inverse ? 1.0 / static_cast<double>(sizes.points) : 1.0) * (is_twice ? 2 : 1);
    for (int64_t k = 0; k < sizes.bins; ++k) {
      const auto points = static_cast<double>(sizes.points);
      const double angle = 2 * std::numbers::pi * static_cast<double>(n * k % sizes.points) / points;
      const double cosine = scale * std::cos(angle), sine = (how.inverse ? 1 : -1) * scale * std::sin(angle);
      double* at = matrix.data() + n * how.parts * columns + k * results;
      at[0] = cosine;
      if (results == 2) at[1] = sine;
      if (how.parts == 2) at[columns] = -sine;
      if (how.parts == 2 && results == 2) at[columns + 1] = cosine;
    }
  }
  return matrix;
}

// The same of sizes that only running tells, each an i64[1].
ir::Value* open_matrix(ir::GraphBuilder& c, const FourierTransform& how, ir::Value* points, ir::Value* inputs,
                       ir::Value* bins) {
  ir::Value *n = c.unsqueeze(count_up(c, inputs), {1}), *k = count_up(c, bins);
  ir::Value *turns = c.cast(c.binary(Op::mod, c.mul(n, k), points), DType::f64), *count = c.cast(points, DType::f64);
  ir::Value* angle = c.divide(c.binary(Op::mul, turns, 2 * std::numbers::pi), count);
  ir::Value *cosine = c.unary(UnaryOp::cos, angle), *sine = c.unary(UnaryOp::sin, angle);
  if (!how.inverse) sine = c.unary(UnaryOp::neg, sine);
  if (how.inverse) {
    ir::Value* scale = c.divide(c.scalar(1, DType::f64), count);
    if (gives_reals(how)) {
      ir::Value* is_twice = c.binary(Op::logical_and, c.binary(Op::greater, n, 0.0),
                                     c.binary(Op::less, c.binary(Op::mul, n, 2.0), points));
      scale = c.mul(scale, c.select(is_twice, c.scalar(2, DType::f64), c.scalar(1, DType::f64)));
    }
    cosine = c.mul(cosine, scale);
    sine = c.mul(sine, scale);
  }
  const auto row = [&](ir::Value* real, ir::Value* imaginary) {  // [inputs, 1, bins, results]
    std::vector<ir::Value*> columns = {c.unsqueeze(real, {1, 3})};
    if (results_of(how) == 2) columns.push_back(c.unsqueeze(imaginary, {1, 3}));
    return c.concat(columns, 3);
  };
  std::vector<ir::Value*> rows = {row(cosine, sine)};
  if (how.parts == 2) rows.push_back(row(c.unary(UnaryOp::neg, sine), cosine));
  ir::Value* height = c.mul(inputs, c.ints({how.parts}));
  ir::Value* width = c.mul(bins, c.ints({results_of(how)}));
  return c.reshape(c.concat(rows, 1), c.concat({height, width}, 0), true);
}

std::optional<int64_t> known(const ir::Value* size) {
  const std::optional<Tensor> content = ir::known_content(*size);
  return content ? std::optional(content->at(0)) : std::nullopt;
}

}  // namespace

ir::Value* fourier_transform(ir::GraphBuilder& c, ir::Value* x, ir::Value* points, const FourierTransform& how) {
  const int64_t axis = x->rank() - 2;
  ir::Value* half = c.plus(c.divide(points, c.ints({2})), c.ints({1}));
  ir::Value* inputs = c.binary(Op::min, c.shape_of(x, axis, axis + 1), gives_reals(how) ? half : points);
  ir::Value* bins = how.onesided && !how.inverse ? half : points;
  if (c.failed()) return x;
  const std::optional<int64_t> num_points = known(points), num_inputs = known(inputs), num_bins = known(bins);
  ir::Value* matrix = nullptr;
  if (num_points && num_inputs && num_bins) {
    const Dims dims{*num_inputs * how.parts, *num_bins * results_of(how)};
    matrix = c.constant(Tensor::from<double>(dims, matrix_of(how, {*num_points, *num_inputs, *num_bins})));
  } else {
    matrix = open_matrix(c, how, points, inputs, bins);
  }
  ir::Value* before = c.shape_of(x, 0, axis);
  if (x->shape()[static_cast<size_t>(axis)] != Expr(num_inputs.value_or(-1)))
    x = c.add(SliceAttrs{}, {x, c.ints({0}), inputs, c.ints({axis})});
  x = c.reshape(x, c.concat({before, c.mul(inputs, c.ints({how.parts}))}, 0), true);
  ir::Value* y = c.matmul(x, c.cast(matrix, x->dtype()));
  return c.reshape(y, c.concat({before, bins, c.ints({results_of(how)})}, 0), true);
}

}  // namespace lathe
