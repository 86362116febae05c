// SPDX-License-Identifier: Apache-2.0
// Blocks of floats (float_blocks.cpp) at one level of instruction sets. Included within a namespace for each, in which
// LATHE_LEVEL is the level's target, Factors one number in all lanes of a register, all() makes it, and scaled()
// multiplies eight floats by it. There is no guard against that.

LATHE_LEVEL [[gnu::always_inline]] inline __m128i narrow(__m256 values, Half) {
  return _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
}

LATHE_LEVEL [[gnu::always_inline]] inline __m128i narrow(__m256 values, BFloat16) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0b1000);
  return _mm256_castsi256_si128(packed);
}

LATHE_LEVEL void scale_lanes(const float* from, int64_t count, double factor, float* to) {
  const Factors factors = all(factor);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    _mm_prefetch(from + i + kAhead, _MM_HINT_T0);
    _mm256_storeu_ps(to + i, scaled(from + i, factors));
  }
  _mm256_zeroupper();  // which compilers leave to us where they make code small
  scale_each(from + i, count - i, factor, to + i);
}

// Eight at a time. `large`: all bits are set of lanes that had a number of that magnitude, or none that is finite.
template <class T, bool kScales>
LATHE_LEVEL [[gnu::always_inline]] inline void narrow_lanes(const float* from, Factors factors, std::byte* to,
                                                            __m256i& large) {
  const __m256 values = kScales ? scaled(from, factors) : _mm256_loadu_ps(from);
  const __m128i narrowed = narrow(values, T());
  std::memcpy(to, &narrowed, sizeof narrowed);
  const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7fffffff));
  large = _mm256_or_si256(large, _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(least_infinite(T()) - 1)));
}

template <class T, bool kScales>
LATHE_LEVEL bool narrow_by(const float* from, int64_t count, double factor, std::byte* to) {
  const Factors factors = all(factor);
  __m256i large = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    _mm_prefetch(from + i + kAhead, _MM_HINT_T0);
    narrow_lanes<T, kScales>(from + i, factors, to + i * int64_t{sizeof(T)}, large);
  }
  if (i < count) {
    std::array<float, kLanes> rest = {};
    std::array<std::byte, kLanes * sizeof(T)> narrowed;
    std::copy(from + i, from + count, rest.begin());
    narrow_lanes<T, kScales>(rest.data(), factors, narrowed.data(), large);
    std::memcpy(to + i * int64_t{sizeof(T)}, narrowed.data(), static_cast<size_t>(count - i) * sizeof(T));
  }
  const bool is_large = _mm256_testz_si256(large, large) == 0;
  _mm256_zeroupper();
  return is_large;
}

template <class T>
bool narrow_all(const float* from, int64_t count, const double* factor, std::byte* to) {
  return factor ? narrow_by<T, true>(from, count, *factor, to) : narrow_by<T, false>(from, count, 1, to);
}
