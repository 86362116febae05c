// SPDX-License-Identifier: Apache-2.0
// The tables come from the plain evaluation itself: resizing the rows of an identity matrix gives, for every output
// element, the weight of every input element.
#include "kernels/resize_tables_tactic.h"

#include <algorithm>

#include "ops/rules.h"

namespace lathe {
namespace {

constexpr int64_t kMaxExtent = 2048;  // of a resized dimension: the table costs its square while building

const Tensor* constant(const Problem& problem, size_t i) {
  return problem.inputs.size() > i && problem.inputs[i].constant && problem.inputs[i].constant->volume() > 0
             ? problem.inputs[i].constant
             : nullptr;
}
const Tensor* scales(const Problem& problem) { return constant(problem, 2); }
const Tensor* sizes(const Problem& problem) { return constant(problem, 3); }

// weight[input element][output element].
Result<Tensor> dense_weights(const Problem& problem, size_t dimension, DType type) {
  const int64_t n = *problem.inputs[0].dims[dimension].as_constant();
  LATHE_ASSIGN(Tensor identity, Tensor::allocate(type, {n, n}));
  std::vector<double> elements(static_cast<size_t>(n * n), 0);
  for (int64_t i = 0; i < n; ++i) elements[static_cast<size_t>(i * (n + 1))] = 1;
  from_doubles(elements, identity);
  ResizeAttrs attrs = problem.attrs<ResizeAttrs>();
  attrs.axes = {1};
  const auto at = static_cast<int64_t>(resize_position(problem, dimension));
  std::vector<Tensor> inputs = {identity, Tensor(), Tensor(), Tensor()};
  if (scales(problem))
    inputs[2] = Tensor::of<float>({1}, {static_cast<float>(scales(problem)->at_double(at))});
  else
    inputs[3] = Tensor::of<int64_t>({1}, {sizes(problem)->at(at)});
  LATHE_ASSIGN(std::vector<Tensor> rows, run_op(attrs, inputs, 1));
  LATHE_CHECK(rows[0].dims()[1] == *problem.outputs[0].dims[dimension].as_constant());
  return std::move(rows[0]);
}

}  // namespace

std::optional<std::string> refuse_resize_tables(const Problem& problem) {
  const auto& attrs = problem.attrs<ResizeAttrs>();
  const Operand& x = problem.inputs[0];
  const Operand& y = problem.outputs[0];
  if (attrs.coordinates == CoordinateMode::tf_crop_and_resize) return "cropping";
  if (attrs.aspect != AspectPolicy::stretch) return "an aspect policy";
  if (!scales(problem) && !sizes(problem)) return "its scales and sizes are not constant";
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (x.dims[d] == y.dims[d] && !scales(problem)) continue;
    if (!x.dims[d].is_constant() || !y.dims[d].is_constant()) {
      if (x.dims[d] == y.dims[d]) continue;
      return "a resized dimension is dynamic";
    }
    if (x.dims[d] != y.dims[d] && (*x.dims[d].as_constant() > kMaxExtent || *x.dims[d].as_constant() == 0))
      return "a resized dimension is too long or empty";
  }
  return std::nullopt;
}

std::vector<size_t> resized_dims(const Problem& problem) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < problem.inputs[0].dims.size(); ++d)
    if (problem.inputs[0].dims[d] != problem.outputs[0].dims[d]) dims.push_back(d);
  return dims;
}

size_t resize_position(const Problem& problem, size_t dimension) {
  const Ints& axes = problem.attrs<ResizeAttrs>().axes;
  const auto rank = static_cast<int64_t>(problem.inputs[0].dims.size());
  for (size_t i = 0; i < axes.size(); ++i)
    if ((axes[i] < 0 ? axes[i] + rank : axes[i]) == static_cast<int64_t>(dimension)) return i;
  return dimension;
}

Result<ResizeTables> resize_tables(const Problem& problem, size_t dimension, DType type) {
  LATHE_ASSIGN(const Tensor dense, dense_weights(problem, dimension, type));
  const std::vector<double> weight = to_doubles(dense);
  const int64_t n = dense.dims()[0], m = dense.dims()[1];
  ResizeTables tables;
  for (int64_t j = 0; j < m; ++j) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += weight[static_cast<size_t>(i * m + j)] != 0;
    tables.taps = std::max(tables.taps, count);
  }
  LATHE_ASSIGN(tables.index, Tensor::allocate(DType::i32, {m, tables.taps}));
  LATHE_ASSIGN(tables.weights, Tensor::allocate(type, {m, tables.taps}));
  std::vector<double> weights(static_cast<size_t>(m * tables.taps), 0);
  for (int64_t j = 0; j < m; ++j) {
    int32_t* index = tables.index.mutable_as<int32_t>() + j * tables.taps;
    int64_t t = 0;
    int32_t last = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double each = weight[static_cast<size_t>(i * m + j)];
      if (each == 0) continue;
      index[t] = last = static_cast<int32_t>(i);
      weights[static_cast<size_t>(j * tables.taps + t++)] = each;
    }
    for (; t < tables.taps; ++t) index[t] = last;
  }
  from_doubles(weights, tables.weights);
  return tables;
}

}  // namespace lathe
