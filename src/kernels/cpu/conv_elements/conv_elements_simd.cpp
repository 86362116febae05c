// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv_elements/conv_elements.h"
#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

template <class T>
void multiply(const void* x, const void* weights, void* sums, int64_t count) {
  const T *from = static_cast<const T*>(x), *factors = static_cast<const T*>(weights);
  T* to = static_cast<T*>(sums);
  for (int64_t i = 0; i < count; ++i) to[i] += from[i] * factors[i];
}

}  // namespace

void multiply_channels(DType lane, const void* x, const void* weights, void* sums, int64_t count) {
  switch (lane) {
    case DType::f64:
      return multiply<double>(x, weights, sums, count);
    case DType::u32:
      return multiply<uint32_t>(x, weights, sums, count);
    case DType::u64:
      return multiply<uint64_t>(x, weights, sums, count);
    default:
      return multiply<float>(x, weights, sums, count);
  }
}

}  // namespace lathe::cpu::LATHE_ISA
