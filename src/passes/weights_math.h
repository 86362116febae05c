// SPDX-License-Identifier: Apache-2.0
// Arithmetic on contents that are known while building, of which some follow from weights that can be replaced: each
// result is computed at once, by the plain evaluation, and keeps what it follows from. The first error stays.
#pragma once

#include "ir/graph.h"

namespace lathe {

class WeightsMath {
 public:
  Known cast(const Known& x, DType to);
  Known binary(ElementwiseOp op, const Known& a, const Known& b);
  Known unary(UnaryOp op, const Known& x);
  Known reshape(const Known& x, const Dims& dims);
  static Known scalar(double value);  // f64[]

  const std::optional<Error>& error() const { return error_; }
  Result<Known> finish(Known x) const { return error_ ? Result<Known>(fail(*error_)) : Result<Known>(std::move(x)); }

 private:
  Known run(const Attributes& attributes, std::initializer_list<Known> inputs);
  std::optional<Error> error_;
};

// What a cast to that type makes of a number.
double rounded_to(DType dtype, double number);

// Whether the value is a constant that follows from weights which can be replaced.
inline bool is_derived(const ir::Value* value) { return value && value->content() && !value->constant(); }

}  // namespace lathe
