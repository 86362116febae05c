// SPDX-License-Identifier: Apache-2.0
#include "ops/float_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace lathe {
namespace {

void scale_each(const float* from, int64_t count, double factor, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] * factor);
}

#ifdef __x86_64__
constexpr int64_t kLanes = 8;
constexpr int64_t kAhead = 512;  // floats: processors fetch ahead within a page alone

// The bits of the least magnitude that becomes infinite.
constexpr int32_t least_infinite(Half) { return 0x477ff000; }
constexpr int32_t least_infinite(BFloat16) { return 0x7f7f8000; }

namespace avx2 {
#define LATHE_LEVEL [[gnu::target("avx2,f16c")]]
using Factors = __m256d;
LATHE_LEVEL inline Factors all(double factor) { return _mm256_set1_pd(factor); }
LATHE_LEVEL [[gnu::always_inline]] inline __m256 scaled(const float* from, Factors factors) {
  const __m128 low = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(from)), factors));
  const __m128 high = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(from + 4)), factors));
  return _mm256_set_m128(high, low);
}
#include "ops/float_blocks_level.h"
#undef LATHE_LEVEL
}  // namespace avx2

// A register of eight doubles takes half the instructions.
namespace avx512 {
#define LATHE_LEVEL [[gnu::target("avx512f,avx512vl,avx2,f16c")]]
using Factors = __m512d;
LATHE_LEVEL inline Factors all(double factor) { return _mm512_set1_pd(factor); }
LATHE_LEVEL [[gnu::always_inline]] inline __m256 scaled(const float* from, Factors factors) {
  constexpr __mmask8 kAll = 0xff;  // without it g++ 12 warns of registers that it does not initialise
  return _mm512_maskz_cvtpd_ps(kAll, _mm512_mul_pd(_mm512_maskz_cvtps_pd(kAll, _mm256_loadu_ps(from)), factors));
}
#include "ops/float_blocks_level.h"
#undef LATHE_LEVEL
}  // namespace avx512
#endif

}  // namespace

NarrowFloats narrow_floats([[maybe_unused]] DType to, [[maybe_unused]] cpu::IsaLevel level) {
#ifdef __x86_64__
  if (level < cpu::IsaLevel::avx2 || !__builtin_cpu_supports("f16c")) return nullptr;
  const bool is_wide = level >= cpu::IsaLevel::avx512;
  if (to == DType::f16) return is_wide ? avx512::narrow_all<Half> : avx2::narrow_all<Half>;
  if (to == DType::bf16) return is_wide ? avx512::narrow_all<BFloat16> : avx2::narrow_all<BFloat16>;
#endif
  return nullptr;
}

ScaleFloats scale_floats([[maybe_unused]] cpu::IsaLevel level) {
#ifdef __x86_64__
  if (level >= cpu::IsaLevel::avx512) return avx512::scale_lanes;
  if (level >= cpu::IsaLevel::avx2) return avx2::scale_lanes;
#endif
  return scale_each;
}

}  // namespace lathe
