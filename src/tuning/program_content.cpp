// SPDX-License-Identifier: Apache-2.0
#include "tuning/program_content.h"

#include <algorithm>
#include <cmath>

namespace lathe {

float element_of(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::f32) return tensor.as<float>()[i];
  return static_cast<float>(tensor.at_double(i));
}

float largest_of(const Tensor& values) {
  float largest = 0;
  for (int64_t i = 0; i < values.volume(); ++i)
    if (const float value = std::fabs(element_of(values, i)); std::isfinite(value)) largest = std::max(largest, value);
  return largest;
}

Result<Tensor> result_of(const Program& program, const std::vector<Tensor>& registers, const Dims& dims) {
  LATHE_ASSIGN(Tensor result, Tensor::allocate(DType::f32, dims));
  std::vector<float> in(registers.size());
  for (int64_t i = 0, n = result.volume(); i < n; ++i) {
    for (size_t k = 0; k < registers.size(); ++k) in[k] = element_of(registers[k], i);
    evaluate(program, in, {result.mutable_as<float>() + i, 1});
  }
  return result;
}

Result<float> step_at_ties(const Program& program, std::vector<Tensor> registers, const Tensor& result) {
  const Tensor center = registers[0];
  const float error = kRounding * largest_of(center);
  float step = 0;
  for (const float shift : {-error, error}) {
    LATHE_ASSIGN(registers[0], Tensor::allocate(DType::f32, center.dims()));
    for (int64_t i = 0; i < center.volume(); ++i) registers[0].mutable_as<float>()[i] = element_of(center, i) + shift;
    LATHE_ASSIGN(const Tensor other, result_of(program, registers, result.dims()));
    for (int64_t i = 0; i < result.volume(); ++i)
      step = std::max(step, std::fabs(element_of(other, i) - element_of(result, i)));
  }
  return step;
}

Result<std::vector<Tensor>> pairs_of(const Tensor& results) {
  Dims dims = results.dims();
  dims.back() /= 2;
  std::vector<Tensor> halves;
  for (int64_t side = 0; side < 2; ++side) {
    LATHE_ASSIGN(Tensor half, Tensor::allocate(DType::f32, dims));
    for (int64_t i = 0; i < half.volume(); ++i) half.mutable_as<float>()[i] = element_of(results, 2 * i + side);
    halves.push_back(std::move(half));
  }
  return halves;
}

}  // namespace lathe
