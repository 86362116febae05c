// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/pairs.h"

#include "kernels/cpu/gemm/pair_lanes.h"
#include "kernels/cpu/gemm/tile.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

LATHE_INLINE Vec load_some(const float* from, int64_t lanes) {
  return lanes >= kLanes ? load(from) : load_tail(from, lanes < 0 ? 0 : static_cast<int>(lanes));
}
LATHE_INLINE void store_some(float* to, int64_t lanes, Vec v) {
  lanes >= kLanes ? store(to, v) : store_tail(to, static_cast<int>(lanes), v);
}

template <class R>
void neighbours(const float* row, int64_t count, float* pairs) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes)
    store(pairs + i / 2, R::pair_neighbours(load(row + i), load(row + i + kLanes)));
  if (i < count) {
    const Vec a = load_some(row + i, count - i), b = load_some(row + i + kLanes, count - i - kLanes);
    store_some(pairs + i / 2, (count - i + 1) / 2, R::pair_neighbours(a, b));
  }
}

template <class R>
void lanes(const float* first, const float* second, int count, float* pairs) {
  for (int i = 0; i < count; i += kLanes) {
    const Vec b = second ? load_some(second + i, count - i) : zero();
    store_some(pairs + i, count - i, R::pair_lanes(load_some(first + i, count - i), b));
  }
}

}  // namespace

void pair_neighbours(const float* row, int64_t count, float* pairs, bool multiplies_bf16) {
  (multiplies_bf16 ? neighbours<FastBf16> : neighbours<SlowBf16>)(row, count, pairs);
}

void pair_neighbours_in_blocks(const float* row, int64_t count, float* pairs, int64_t step) {
  constexpr int64_t kBlock = 2 * gemm::kMatrixRegisterRows;  // elements
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock, pairs += step)
    for (int64_t at = 0; at < kBlock; at += 2 * kLanes)
      store(pairs + at / 2, FastBf16::pair_neighbours(load(row + i + at), load(row + i + at + kLanes)));
  for (int64_t at = 0; i < count && at < kBlock; at += 2 * kLanes)
    store(pairs + at / 2, FastBf16::pair_neighbours(load_some(row + i + at, count - i - at),
                                                    load_some(row + i + at + kLanes, count - i - at - kLanes)));
}

void pair_rows(const float* first, const float* second, int count, float* pairs, bool multiplies_bf16) {
  (multiplies_bf16 ? lanes<FastBf16> : lanes<SlowBf16>)(first, second, count, pairs);
}

}  // namespace lathe::cpu::LATHE_ISA
