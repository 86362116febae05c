// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "ops/rules.h"

namespace lathe {

// 8-bit levels minus their zero point, which broadcasts, as i8; nothing where not all fit. So weights that are about
// 128 become those that integer kernels multiply.
inline Result<std::optional<Tensor>> centred_bytes(const Tensor& levels, const Tensor& zero_point) {
  const Tensor operands[] = {levels, Tensor::of<float>({}, {1}), zero_point};
  LATHE_ASSIGN(const std::vector<Tensor> numbers, run_op(DequantizeAttrs{}, operands, 1));
  const std::vector<double> values = to_doubles(numbers[0]);
  if (std::ranges::any_of(values, [](double value) { return value < -128 || value > 127; }))
    return std::optional<Tensor>();
  LATHE_ASSIGN(Tensor centred, Tensor::allocate(DType::i8, levels.dims()));
  from_doubles(values, centred);
  return std::optional(std::move(centred));
}

}  // namespace lathe
