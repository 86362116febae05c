// SPDX-License-Identifier: Apache-2.0
#include "passes/weights_math.h"

#include <cmath>

namespace lathe {

Known WeightsMath::run(const Attributes& attributes, std::initializer_list<Known> inputs) {
  if (error_) return {};
  Result<std::vector<Known>> results = compute(attributes, {inputs.begin(), inputs.size()}, 1);
  if (results) return std::move((*results)[0]);
  error_ = std::move(results).error();
  return {};
}

Known WeightsMath::cast(const Known& x, DType to) {
  if (error_ || x.content.dtype() == to) return x;
  CastAttrs attributes;
  attributes.to = to;
  return run(attributes, {x});
}

Known WeightsMath::binary(ElementwiseOp op, const Known& a, const Known& b) {
  ElementwiseAttrs attributes;
  attributes.op = op;
  return run(attributes, {a, b});
}

Known WeightsMath::unary(UnaryOp op, const Known& x) {
  UnaryAttrs attributes;
  attributes.op = op;
  return run(attributes, {x});
}

Known WeightsMath::reshape(const Known& x, const Dims& dims) {
  return run(ReshapeAttrs(), {x, {Tensor::from<int64_t>({static_cast<int64_t>(dims.size())}, dims), nullptr}});
}

Known WeightsMath::scalar(double value) { return {Tensor::of<double>({}, {value}), nullptr}; }

double rounded_to(DType dtype, double number) {
  WeightsMath math;
  const Known cast = math.cast(WeightsMath::scalar(number), dtype);
  return math.error() ? std::nan("") : cast.content.at_double(0);
}

}  // namespace lathe
