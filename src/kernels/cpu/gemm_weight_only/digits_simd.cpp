// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/integer_products.h"
#include "kernels/cpu/gemm_weight_only/panel_reading.h"
#include "kernels/cpu/gemm_weight_only/row_digits.h"

namespace lathe::cpu::LATHE_ISA {
#if defined(LATHE_ISA_LEVEL_avx512) || defined(LATHE_ISA_LEVEL_avx2)
namespace {

using gemm::DigitGroup;
using gemm::DigitKernel;
using gemm::PackedPanels;

constexpr int kColumns = PackedPanels::kColumns;
constexpr int kPlaces = DigitGroup::kPlaces;
constexpr int kVectors = 2;  // of columns that are multiplied together: sums enough to add without waiting

// Eight numbers' digits in the order of DigitGroup.
template <int kForm>
LATHE_INLINE __m256i in_places(__m256i numbers) {
  // Each place but the highest gives what is above 127 to the next: its byte is then 128 more than its digit.
  const __m256i carries = _mm256_set1_epi32(0x00808080);
  __m256i digits = _mm256_xor_si256(_mm256_add_epi32(numbers, carries), carries);
  if constexpr (bits_of(kForm) == 4)
    digits = _mm256_permutevar8x32_epi32(digits, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  const __m256i transpose =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  return _mm256_shuffle_epi8(digits, transpose);
}

// Codes of 4-bit floats are multiplied as integers: twice their numbers, and 12 that none is negative.
constexpr int centre_of(int form) { return form == kE2m1 ? 12 : 1 << (bits_of(form) - 1); }
constexpr int halvings_of(int form) { return form == kE2m1 ? 1 : 0; }

template <int kForm>
bool split_group(const float* numbers, int factor, DigitGroup& group) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i most = _mm256_setzero_si256();
  for (int i = 0; i < DigitGroup::kDepth; i += 8)
    most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(numbers + i)), magnitude));
  alignas(32) int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), most);
  int32_t largest = 0;
  for (int32_t lane : lanes) largest = lane > largest ? lane : largest;
  constexpr int kLeastExponent = 30 + halvings_of(kForm);  // for which the unit is a normal number
  const int exponent = largest == 0 ? kLeastExponent : largest >> 23;
  if (exponent < kLeastExponent || exponent == 255) return false;
  group.unit = __builtin_bit_cast(float, (exponent - 29 - halvings_of(kForm)) << 23);
  const __m256 to_units = _mm256_set1_ps(__builtin_bit_cast(float, (283 - exponent) << 23));
  const __m256i ones = _mm256_set1_epi8(1), wide_ones = _mm256_set1_epi16(1);
  __m256i sums = _mm256_setzero_si256();
  for (int i = 0; i < DigitGroup::kDepth; i += 8) {
    const __m256i digits = in_places<kForm>(_mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(numbers + i), to_units)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(group.digits + i), digits);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_maddubs_epi16(ones, digits), wide_ones));
  }
  const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(group.sums), _mm_mullo_epi32(both, _mm_set1_epi32(-factor)));
  return true;
}

template <int kForm>
bool split(const PackedPanels& panels, const float* row, DigitGroup* groups) {
  constexpr int64_t kDepth = DigitGroup::kDepth;
  const int factor = panels.has_zeros ? 1 : centre_of(kForm);
  for (int64_t first = 0; first < panels.k; first += panels.block) {
    const int64_t end = first + panels.block < panels.k ? first + panels.block : panels.k;
    for (int64_t k = first; k < end; k += kDepth, ++groups) {
      float some[kDepth] = {};
      if (end - k < kDepth) __builtin_memcpy(some, row + k, static_cast<size_t>(end - k) * sizeof(float));
      if (!split_group<kForm>(end - k < kDepth ? some : row + k, factor, *groups)) return false;
    }
  }
  return true;
}

#if defined(LATHE_ISA_LEVEL_avx2)
// Products of codes of 4 bits, of which 32 sums of two fit 16 bits, where CPUs have no instruction for sums of four.
struct NarrowProducts {
  static constexpr int kMostRows = 1;
  LATHE_INLINE static IntVec add(IntVec sums, IntVec codes, IntVec digits) {
    const __m256i products = _mm256_maddubs_epi16(reinterpret_cast<__m256i>(codes), reinterpret_cast<__m256i>(digits));
    sums = reinterpret_cast<IntVec>(_mm256_add_epi16(reinterpret_cast<__m256i>(sums), products));
    asm("" : "+x"(sums));  // else all products are made, and stored, before they are added
    return sums;
  }
  LATHE_INLINE static IntVec begin(IntVec) { return IntVec{}; }
  LATHE_INLINE static IntVec total(IntVec sums, IntVec first) {
    return reinterpret_cast<IntVec>(_mm256_madd_epi16(reinterpret_cast<__m256i>(sums), _mm256_set1_epi16(1))) + first;
  }
};
#endif
struct WideProducts : ByteProducts {
  static constexpr int kMostRows = 2;
  LATHE_INLINE static IntVec begin(IntVec first) { return first; }
  LATHE_INLINE static IntVec total(IntVec sums, IntVec) { return sums; }
};

template <class Products>
LATHE_INLINE void add_products(IntVec (&sums)[kPlaces][kVectors], const IntVec (&codes)[kVectors],
                               const int32_t* digits) {
  LATHE_UNROLL
  for (int p = 0; p < kPlaces; ++p) {
    const IntVec four = broadcast_int(digits[p]);
    LATHE_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[p][v] = Products::add(sums[p][v], codes[v], four);
  }
}

// Of codes of 4 bits, one in each byte.
template <int kForm>
LATHE_INLINE IntVec as_factors(IntVec codes) {
#if defined(LATHE_ISA_LEVEL_avx512)
  if constexpr (kForm == kE2m1) {
    const __m128i table = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return reinterpret_cast<IntVec>(
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), reinterpret_cast<__m512i>(codes)));
  }
#endif
  return codes;
}

template <class Products, int kForm>
LATHE_INLINE void add_word(IntVec (&sums)[kPlaces][kVectors], const int32_t* words, const int32_t* digits) {
  IntVec codes[kVectors], odd[kVectors];
  LATHE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const IntVec word = load_int(words + v * kLanes);
    if constexpr (bits_of(kForm) == 4) {
      codes[v] = as_factors<kForm>(word & 0x0f0f0f0f);
      odd[v] = as_factors<kForm>(word >> 4 & 0x0f0f0f0f);
    } else {
      codes[v] = word ^ static_cast<int32_t>(0x80808080u);
    }
  }
  add_products<Products>(sums, codes, digits);
  if constexpr (bits_of(kForm) == 4) add_products<Products>(sums, odd, digits + kPlaces);
}

struct Place {
  const std::byte *block, *codes;
  int column, words;
};

// Adds what a group makes of some columns.
template <class Products, int kForm, bool kZeros>
LATHE_INLINE void multiply_group(const PackedPanels& panels, const Place& at, const DigitGroup& group, float* totals) {
  constexpr int kDigits = 32 / bits_of(kForm), kWords = DigitGroup::kDepth / kDigits;  // digits of a word
  const auto zeros_of = [&](int p, int v) {
    const IntVec sum = broadcast_int(group.sums[p]);
    if constexpr (kZeros) return sum * load_zeros(panels, at.block, at.column + v * kLanes);
    return sum;
  };
  IntVec sums[kPlaces][kVectors];
  LATHE_UNROLL
  for (int p = 0; p < kPlaces; ++p)
    for (int v = 0; v < kVectors; ++v) sums[p][v] = Products::begin(zeros_of(p, v));
  const auto* words = reinterpret_cast<const int32_t*>(at.codes) + at.column;
  if (at.words == kWords) {
    LATHE_UNROLL
    for (int w = 0; w < kWords; ++w) add_word<Products, kForm>(sums, words + w * kColumns, group.digits + w * kDigits);
  } else {
    for (int w = 0; w < at.words; ++w)
      add_word<Products, kForm>(sums, words + w * kColumns, group.digits + w * kDigits);
  }
  LATHE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const int column = at.column + v * kLanes;
    IntVec places[kPlaces];
    LATHE_UNROLL
    for (int p = 0; p < kPlaces; ++p) places[p] = Products::total(sums[p][v], zeros_of(p, v));
    const Vec high = to_float((places[3] << 8) + places[2]), low = to_float((places[1] << 8) + places[0]);
    const Vec sum = mul_add(high, broadcast(0x1p16f), low) * broadcast(group.unit);
    store(totals + column, mul_add(sum, load_scales(panels, at.block, column), load(totals + column)));
  }
}

template <class Products, int kForm, bool kZeros>
void multiply(const PackedPanels& panels, const std::byte* panel, const DigitGroup* groups, int64_t stride, int rows,
              float* sums) {
  constexpr int64_t kPerWord = 32 / bits_of(kForm);
  for (int i = 0; i < rows * kColumns; i += kLanes) store(sums + i, zero());
  read_in_pieces<DigitGroup::kDepth>(
      panels, panel, [&](const std::byte* block, const std::byte* codes, int64_t, int64_t depth) {
        Place at = {block, codes, 0, static_cast<int>((depth + kPerWord - 1) / kPerWord)};
        for (int r = 0; r < rows; ++r)
          for (at.column = 0; at.column < kColumns; at.column += kVectors * kLanes)
            multiply_group<Products, kForm, kZeros>(panels, at, groups[r * stride], sums + r * kColumns);
        ++groups;
      });
}

template <class Products, int kForm>
const DigitKernel* kernel_for(bool has_zeros) {
  static constexpr DigitKernel kernels[] = {{Products::kMostRows, split<kForm>, multiply<Products, kForm, false>},
                                            {Products::kMostRows, split<kForm>, multiply<Products, kForm, true>}};
  return &kernels[has_zeros];
}

}  // namespace
#endif

const gemm::DigitKernel* digit_kernel(const gemm::PackedPanels& panels, bool multiplies_bytes) {
#if defined(LATHE_ISA_LEVEL_avx512) || defined(LATHE_ISA_LEVEL_avx2)
#if defined(LATHE_ISA_LEVEL_avx512)
  static constexpr DigitKernel floats = {WideProducts::kMostRows, split<kE2m1>, multiply<WideProducts, kE2m1, false>};
  if (panels.codes == gemm::Codes::e2m1)
    return multiplies_bytes ? &floats : nullptr;  // 16 bits may not hold sums of two
#endif
  if (panels.codes != gemm::Codes::integers) return nullptr;
  if (multiplies_bytes)
    return panels.bits == 8 ? kernel_for<WideProducts, 8>(panels.has_zeros)
                            : kernel_for<WideProducts, 4>(panels.has_zeros);
#endif
#if defined(LATHE_ISA_LEVEL_avx2)
  if (panels.bits == 4) return kernel_for<NarrowProducts, 4>(panels.has_zeros);
#endif
  return nullptr;
}

}  // namespace lathe::cpu::LATHE_ISA
