// SPDX-License-Identifier: Apache-2.0
#include "peak.h"

#include <algorithm>
#include <chrono>

#include "kernels/cpu/isa.h"

namespace lathe::bench {
namespace {

// Ten independent chains: two units of four or five cycles' latency are kept busy.
template <class Vec>
__attribute__((always_inline)) inline double rate(long turns) {
  Vec a0{}, a1{}, a2{}, a3{}, a4{}, a5{}, a6{}, a7{}, a8{}, a9{};
  const Vec x = Vec{} + 0.5f;
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int round = 0; round < 50; ++round) {
    const auto start = Clock::now();
    for (long i = 0; i < turns; ++i) {
#define LATHE_CHAIN(v) \
  v = v * x + x;       \
  asm volatile("" : "+x"(v));
      LATHE_CHAIN(a0)
      LATHE_CHAIN(a1)
      LATHE_CHAIN(a2)
      LATHE_CHAIN(a3) LATHE_CHAIN(a4) LATHE_CHAIN(a5) LATHE_CHAIN(a6) LATHE_CHAIN(a7) LATHE_CHAIN(a8) LATHE_CHAIN(a9)
#undef LATHE_CHAIN
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, static_cast<double>(turns) * 10 * 2 * (sizeof(Vec) / 4) / seconds / 1e9);
  }
  return best;
}

typedef float Vec4 __attribute__((vector_size(16)));
#if defined(__x86_64__)
typedef float Vec8 __attribute__((vector_size(32)));
typedef float Vec16 __attribute__((vector_size(64)));
__attribute__((target("avx512f"))) double rate_avx512() { return rate<Vec16>(200'000); }
__attribute__((target("avx2,fma"))) double rate_avx2() { return rate<Vec8>(200'000); }
#endif

}  // namespace

double measure_peak() {
#if defined(__x86_64__)
  if (cpu::isa_level() == cpu::IsaLevel::avx512) return rate_avx512();
  if (cpu::isa_level() == cpu::IsaLevel::avx2) return rate_avx2();
#endif
  return rate<Vec4>(200'000);
}

}  // namespace lathe::bench
