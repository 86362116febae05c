// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/convolution_problem.h"

#include <deque>
#include <random>

#include "ops/rules.h"

namespace lathe::cuda {
namespace {

// Problems point to attributes; tests give temporaries.
template <class A>
const A& kept(const A& attributes) {
  static std::deque<A> all;
  return all.emplace_back(attributes);
}

}  // namespace

Tensor small_weights(DType type, Dims dims) {
  Tensor tensor = *Tensor::allocate(type, std::move(dims));
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7 % 5);
  from_doubles(values, tensor);
  return tensor;
}

Tensor any_levels(Dims dims, uint32_t seed) {
  Tensor tensor = *Tensor::allocate(DType::i8, std::move(dims));
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> level(-128, 127);
  for (int64_t i = 0; i < tensor.volume(); ++i) tensor.mutable_as<int8_t>()[i] = static_cast<int8_t>(level(generator));
  return tensor;
}

Tensor small_scales(Dims dims) {
  Tensor tensor = *Tensor::allocate(DType::f32, std::move(dims));
  for (int64_t i = 0; i < tensor.volume(); ++i)
    tensor.mutable_as<float>()[i] = static_cast<float>(i % 7 + 1) * 0x1p-12f;
  return tensor;
}

Problem convolution_problem(const ConvolutionAttrs& attrs, Operand x, const Tensor& w) {
  Problem problem = op_problem(kept(attrs), {std::move(x), operand(w.dtype(), w.dims())}, {});
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  Dims y = {problem.inputs[0].opt_dims[0], w.dims()[0]};
  for (size_t i = 0; i + 2 < w.dims().size(); ++i) {
    const auto get = [i](const Ints& values, int64_t fallback) { return i < values.size() ? values[i] : fallback; };
    const int64_t reach = (w.dims()[2 + i] - 1) * get(attrs.dilation, 1) + 1;
    y.push_back((problem.inputs[0].opt_dims[2 + i] + get(attrs.pads_begin, 0) + get(attrs.pads_end, 0) - reach) /
                    get(attrs.stride, 1) +
                1);
  }
  problem.outputs = {operand(sum_dtype(w.dtype()), std::move(y), Layout::channels_last)};
  return problem;
}

Problem deconvolution_problem(const DeconvolutionAttrs& attrs, Operand x, const Tensor& w) {
  Problem problem = op_problem(kept(attrs), {std::move(x), operand(w.dtype(), w.dims())}, {});
  problem.inputs[1].constant = problem.inputs[1].weights = &w;
  Dims y = {problem.inputs[0].opt_dims[0], w.dims()[1] * attrs.groups};
  for (size_t i = 0; i + 2 < w.dims().size(); ++i) {
    const auto get = [i](const Ints& values, int64_t fallback) { return i < values.size() ? values[i] : fallback; };
    const int64_t reach = (w.dims()[2 + i] - 1) * get(attrs.dilation, 1) + 1;
    y.push_back((problem.inputs[0].opt_dims[2 + i] - 1) * get(attrs.stride, 1) + reach + get(attrs.output_padding, 0) -
                get(attrs.pads_begin, 0) - get(attrs.pads_end, 0));
  }
  problem.outputs = {operand(w.dtype(), std::move(y), Layout::channels_last)};
  return problem;
}

}  // namespace lathe::cuda
