// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm_weight_only/panel_reading.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using gemm::PackedPanels;
using gemm::PanelKernel;
using gemm::PanelProduct;

constexpr int kColumns = PackedPanels::kColumns;
constexpr int kRows = kVecRegisters == 32 && kVecBytes == 64 ? gemm::kMostPanelRows : 4;
constexpr int kDepth = 64;  // of K that is read at a time, in all columns; blocks may be deeper
// Vectors of columns that are multiplied together: sums enough to add without waiting for the last ones.
constexpr int vectors_for(int rows) { return kVecRegisters == 32 || rows <= 2 ? 4 : 2; }

// Integers of 4 bits that are no indices of a table become two's complement: less half of the codes.
template <int kForm>
LATHE_INLINE IntVec load_words(const int32_t* from) {
  return kForm == 4 && kVecBytes < 64 ? load_int(from) ^ static_cast<int32_t>(0x88888888u) : load_int(from);
}

// Of codes of 4 bits, the level of each, where a vector holds them all: then integers and floats have one code.
#if defined(LATHE_ISA_LEVEL_avx512)
constexpr bool kHasTables = true;
LATHE_INLINE Vec table_of(const PackedPanels& panels) {
  alignas(64) static constexpr float kTables[2][16] = {
      {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7},
      {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6}};
  return load(kTables[panels.codes == gemm::Codes::e2m1]);
}
#else
constexpr bool kHasTables = false;
LATHE_INLINE Vec table_of(const PackedPanels&) { return zero(); }
#endif

// Codes number i of the words, of integers less half of the codes. Exponents of 8-bit floats have biases that
// differ from that of f32 by 120 and 112. Integers of 8 bits become bits of a float that is larger by a power of two,
// which is subtracted: two of a word stay where they are, and cores have more units for that than for shifts.
template <int kForm>
LATHE_INLINE Vec levels(IntVec words, int i, [[maybe_unused]] Vec table) {
  if constexpr (kForm == kE2m1) {
    // By way of no subnormal numbers, as which half of the vectors would have a 0.5. Those from 1 on become what they
    // are, and 0 and 0.5 become 0.5 and 0.75.
    const IntVec code = words >> 4 * i, magnitude = code & 7;
    const Vec number = as_float((magnitude << 22) + (126 << 23));
    const Vec right = select(magnitude < 2, number * 2 - 1, number);
    return as_float(as_int(right) | (code << 28 & static_cast<int32_t>(0x80000000u)));
  } else if constexpr (kForm == kE4m3 || kForm == kE5m2) {
    constexpr bool kIsE4m3 = kForm == kE4m3;  // signs first, so that they stay where they are
    constexpr auto kMask = static_cast<int32_t>(kIsE4m3 ? 0x87f00000u : 0x8fe00000u);
    const IntVec bits = ((words << (24 - 8 * i)) >> (kIsE4m3 ? 4 : 3)) & kMask;
    return as_float(bits) * broadcast(kIsE4m3 ? 0x1p120f : 0x1p112f);
  } else if constexpr (kForm == 8) {
    const int at = i % 2 * 8;
    const IntVec low = i < 2 ? words : words >> 16;
    return as_float((low & (255 << at)) ^ ((127 + 23 - at) << 23 | 128 << at)) -
           static_cast<float>((1 << (23 - at)) + 128);
  } else {
#if defined(LATHE_ISA_LEVEL_avx512)
    return _mm512_permutexvar_ps(_mm512_srli_epi32(reinterpret_cast<__m512i>(words), static_cast<unsigned>(4 * i)),
                                 table);
#else
    return __builtin_convertvector(words << (28 - 4 * i) >> 28, Vec);
#endif
  }
}

// Less half of the codes, as levels.
template <int kForm>
LATHE_INLINE Vec zero_levels(const PackedPanels& panels, const std::byte* block, int column) {
  return to_float(load_zeros(panels, block, column)) - static_cast<float>(1 << (bits_of(kForm) - 1));
}

// The levels of a word of each column, the first `count` of them, times A from column k on.
template <int kForm, bool kZeros, int kCount, int kVectors>
LATHE_INLINE void multiply_words(Vec (&sums)[kCount][kVectors], const int32_t* words, const Vec (&zeros)[kVectors],
                                 const float* const (&a)[kCount], int64_t k, int count, Vec table) {
  constexpr int kPerWord = 32 / bits_of(kForm);
  IntVec loaded[kVectors];
  LATHE_UNROLL
  for (int v = 0; v < kVectors; ++v) loaded[v] = load_words<kForm>(words + v * kLanes);
  LATHE_UNROLL
  for (int i = 0; i < kPerWord; ++i) {
    if (i >= count) break;
    Vec columns[kVectors];
    LATHE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = levels<kForm>(loaded[v], i, table);
      if constexpr (kZeros) columns[v] -= zeros[v];
    }
    LATHE_UNROLL
    for (int r = 0; r < kCount; ++r) {
      const Vec row = broadcast(a[r][k + i]);
      LATHE_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = mul_add(row, columns[v], sums[r][v]);
    }
  }
}

// Adds what a block makes of some columns.
template <int kForm, bool kZeros, int kCount, int kVectors>
LATHE_INLINE void multiply_columns(const PanelProduct& product, const std::byte* block, const std::byte* codes,
                                   int column, const float* const (&a)[kCount], int64_t depth) {
  constexpr int kPerWord = 32 / bits_of(kForm);
  const PackedPanels& panels = product.panels;
  const Vec table = table_of(panels);
  Vec sums[kCount][kVectors], zeros[kVectors];
  LATHE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    if constexpr (kZeros) zeros[v] = zero_levels<kForm>(panels, block, column + v * kLanes);
    LATHE_UNROLL
    for (int r = 0; r < kCount; ++r) sums[r][v] = zero();
  }
  const auto* words = reinterpret_cast<const int32_t*>(codes) + column;
  int64_t k = 0;
  for (; k + kPerWord <= depth; k += kPerWord, words += kColumns)
    multiply_words<kForm, kZeros>(sums, words, zeros, a, k, kPerWord, table);
  if (k < depth) multiply_words<kForm, kZeros>(sums, words, zeros, a, k, static_cast<int>(depth - k), table);
  LATHE_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const Vec scale = load_scales(panels, block, column + v * kLanes);
    LATHE_UNROLL
    for (int r = 0; r < kCount; ++r) {
      float* total = product.sums + r * kColumns + column + v * kLanes;
      store(total, mul_add(sums[r][v], scale, load(total)));
    }
  }
}

template <int kForm, bool kZeros, int kCount>
void multiply_panel(const PanelProduct& product) {
  constexpr int kVectors = vectors_for(kCount);
  for (int i = 0; i < kCount * kColumns; i += kLanes) store(product.sums + i, zero());
  read_in_pieces<kDepth>(product.panels, product.panel,
                         [&](const std::byte* block, const std::byte* codes, int64_t k, int64_t depth) {
                           const float* a[kCount];
                           for (int r = 0; r < kCount; ++r) a[r] = product.a[r] + k;
                           for (int column = 0; column < kColumns; column += kVectors * kLanes)
                             multiply_columns<kForm, kZeros, kCount, kVectors>(product, block, codes, column, a, depth);
                         });
}

template <int kForm, bool kZeros>
void multiply_rows(const PanelProduct& product, int rows) {
  static constexpr void (*functions[])(const PanelProduct&) = {
      multiply_panel<kForm, kZeros, 1>, multiply_panel<kForm, kZeros, 2>, multiply_panel<kForm, kZeros, 3>,
      multiply_panel<kForm, kZeros, 4>, multiply_panel<kForm, kZeros, kRows>};
  functions[rows - 1](product);
}

template <int kForm, bool kZeros>
void unpack_panel(const PackedPanels& panels, const std::byte* panel, int columns, int width, float* to) {
  constexpr int kPerWord = 32 / bits_of(kForm);
  read_in_pieces<kDepth>(panels, panel, [&](const std::byte* block, const std::byte* codes, int64_t k, int64_t depth) {
    for (int column = 0; column < columns; column += kLanes) {
      const Vec scale = load_scales(panels, block, column);
      Vec zeros;
      if constexpr (kZeros) zeros = zero_levels<kForm>(panels, block, column);
      const auto* words = reinterpret_cast<const int32_t*>(codes) + column;
      float* out = to + column / width * width * panels.k + column % width + k * width;
      for (int64_t at = 0; at < depth; at += kPerWord, words += kColumns) {
        const IntVec word = load_words<kForm>(words);
        LATHE_UNROLL
        for (int i = 0; i < kPerWord; ++i, out += width) {
          if (at + i >= depth) break;
          Vec level = levels<kForm>(word, i, table_of(panels));
          if constexpr (kZeros) level -= zeros;
          store(out, level * scale);
        }
      }
    }
  });
}

struct Functions {
  void (*multiply)(const PanelProduct& product, int rows);
  void (*unpack)(const PackedPanels& panels, const std::byte* panel, int columns, int width, float* to);
};
constexpr bool kUnpacks = kVecRegisters < 32;  // others multiply enough rows by what they have unpacked in registers
template <int kForm, bool kZeros = false>
constexpr Functions kFunctions = {multiply_rows<kForm, kZeros>, kUnpacks ? unpack_panel<kForm, kZeros> : nullptr};

const Functions& functions_for(const PackedPanels& panels) {
  if constexpr (!kHasTables)
    if (panels.codes == gemm::Codes::e2m1) return kFunctions<kE2m1>;
  if (panels.codes == gemm::Codes::e4m3) return kFunctions<kE4m3>;
  if (panels.codes == gemm::Codes::e5m2) return kFunctions<kE5m2>;
  if (panels.bits == 8) return panels.has_zeros ? kFunctions<8, true> : kFunctions<8>;
  return panels.has_zeros ? kFunctions<4, true> : kFunctions<4>;
}

void multiply(const PanelProduct& product, int rows) { functions_for(product.panels).multiply(product, rows); }
void unpack(const PackedPanels& panels, const std::byte* panel, int columns, int width, float* to) {
  functions_for(panels).unpack(panels, panel, columns, width, to);
}

}  // namespace

const PanelKernel& weight_only_kernel() {
  static const PanelKernel kernel = {kRows, multiply, kUnpacks ? unpack : nullptr};
  return kernel;
}

}  // namespace lathe::cpu::LATHE_ISA
