// SPDX-License-Identifier: Apache-2.0
// What quantize and dequantize share.
#pragma once

#include "ops/pointwise.h"

namespace lathe {

struct IntegerRange {
  double low, high;
};
// Of an integer type that quantize gives; nullopt for others.
std::optional<IntegerRange> quantized_range(DType dtype);

// What quantize gives and dequantize takes beside integers: floats of 8 and 4 bits.
bool is_quantized_float(DType dtype);

// The types of x's scale and zero point, and that their shapes fit x: by blocks, or broadcast where `blocks` is empty.
Result<> check_quantization(InferContext& context, DType levels, const Ints& blocks);

// A scale or zero point with one element for each of x.
Result<Tensor> repeat_blocks(const Tensor& operand, const Dims& x, const Ints& blocks);

// y = f(x, scale, zero point) in double, the latter two repeated as x needs them; without a zero point it is 0.
template <class F>
Result<> map_quantized(EvalContext& context, const Ints& blocks, bool saturate, F f) {
  const Tensor& x = context.input(0);
  Tensor scale = context.input(1), zero_point = context.has(2) ? context.input(2) : Tensor::of<float>({}, {0.0f});
  if (!blocks.empty()) {
    LATHE_ASSIGN(scale, repeat_blocks(scale, x.dims(), blocks));
    if (context.has(2)) {
      LATHE_ASSIGN(zero_point, repeat_blocks(zero_point, x.dims(), blocks));
    }
  }
  Tensor& y = context.output(0);
  const Dims operands[] = {x.dims(), scale.dims(), zero_point.dims()};
  std::array<double, kPointwiseBlock> values, scales, zeros;
  Runs runs(y.dims(), operands);
  int64_t position = 0;
  for (int64_t run = 0; run < runs.total(); ++run, runs.next()) {
    for (int64_t begin = 0; begin < runs.count(); begin += kPointwiseBlock) {
      const auto size = static_cast<size_t>(std::min(kPointwiseBlock, runs.count() - begin));
      const auto read = [&](const Tensor& tensor, size_t k, std::array<double, kPointwiseBlock>& to) {
        read_run(tensor, runs.offset(k) + begin * runs.step(k), runs.step(k), std::span(to.data(), size));
      };
      read(x, 0, values), read(scale, 1, scales), read(zero_point, 2, zeros);
      for (size_t i = 0; i < size; ++i) values[i] = f(values[i], scales[i], zeros[i]);
      encode_doubles({values.data(), size}, position, y, saturate);
      position += static_cast<int64_t>(size);
    }
  }
  return {};
}

}  // namespace lathe
