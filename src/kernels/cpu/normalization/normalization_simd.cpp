// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/normalization/normalization.h"

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

// A row operand as vectors, the single value spread once.
struct Stream {
  const float* data;
  int64_t step;
  Vec single;
  explicit Stream(RowOperand operand)
      : data(operand.data), step(operand.step), single(step ? zero() : broadcast(*operand.data)) {}
};

}  // namespace

void normalize_row(const float* x, float* y, int64_t n, RowOperand mean, RowOperand rstd, RowOperand scale,
                   RowOperand bias) {
  const Stream m(mean), r(rstd), s(scale), b(bias);
  const auto get = [](const Stream& stream, int64_t i) { return stream.step ? load(stream.data + i) : stream.single; };
  const auto get_tail = [](const Stream& stream, int64_t i, int rest) {
    return stream.step ? load_tail(stream.data + i, rest) : stream.single;
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, (load(x + i) - get(m, i)) * get(r, i) * get(s, i) + get(b, i));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    const Vec value = (load_tail(x + i, rest) - get_tail(m, i, rest)) * get_tail(r, i, rest) * get_tail(s, i, rest) +
                      get_tail(b, i, rest);
    store_tail(y + i, rest, value);
  }
}

}  // namespace lathe::cpu::LATHE_ISA
