// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/depthwise/windows.h"
#include "kernels/cpu/depthwise_integer/depthwise_integer.h"
#include "kernels/cpu/gemm/integer_products.h"
#include "kernels/cpu/simd_levels.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using depthwise::kMaxPixels;
using depthwise::Strip;

// Up to four rows of x that are multiplied together, each from the strip's first column on.
struct FourRows {
  const uint8_t* row[4];
  int64_t pitch[4];  // from column to column
};

// The rows of taps [first, first + count) at depth tap d. Those outside of x, and beyond the count, repeat one pixel.
FourRows rows_of(const Strip& strip, int64_t d, int64_t first, int64_t count, int64_t left) {
  const depthwise::Shape& shape = *strip.shape;
  const int64_t z = strip.corner[0] + d * shape.dilation[0];
  FourRows rows;
  for (int64_t r = 0; r < 4; ++r) {
    const int64_t y = strip.corner[1] + (first + r) * shape.dilation[1];
    const bool inside = r < count && z >= 0 && z < strip.in[0] && y >= 0 && y < strip.in[1];
    rows.row[r] = inside ? reinterpret_cast<const uint8_t*>(strip.x) + z * strip.in_stride[0] + y * strip.in_stride[1] +
                               left * strip.in_stride[2]
                         : reinterpret_cast<const uint8_t*>(strip.outside);
    rows.pitch[r] = inside ? strip.in_stride[2] : 0;
  }
  return rows;
}

// A strip with the rows of its taps, where the kernel has no depth: four of them, and up to four more.
struct IntegerStrip : Strip {
  explicit IntegerStrip(const Strip& strip) : Strip(strip) {
    const int64_t height = shape->kernel[1];
    for (int64_t first = 0; first < std::min<int64_t>(height, 8); first += 4)
      rows[first / 4] = rows_of(*this, 0, first, std::min<int64_t>(height - first, 4), corner[2]);
  }
  FourRows rows[2];
};

#if defined(LATHE_ISA_LEVEL_avx512)
// Rows of 16 channels lie in quarters of a vector: fours of bytes change places, and then the bytes of four such.
template <int kRows>
LATHE_INLINE IntVec interleave_rows(const FourRows& rows, int64_t column, int64_t c) {
  static_assert(kRows == 3 || kRows == 4);
  const auto row = [&](int r) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows.row[r] + column * rows.pitch[r] + c));
  };
  __m512i quarters = _mm512_inserti32x4(_mm512_zextsi128_si512(row(0)), row(1), 1);
  quarters = _mm512_inserti32x4(quarters, row(2), 2);
  if constexpr (kRows == 4) quarters = _mm512_inserti32x4(quarters, row(3), 3);
  const __m512i fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
  return reinterpret_cast<IntVec>(_mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, quarters), bytes));
}
#endif

// The channels of one column, four rows in each lane.
template <int kRows, bool kTail>
LATHE_INLINE IntVec load_fours(const FourRows& rows, int64_t column, int64_t c, int lanes) {
#if defined(LATHE_ISA_LEVEL_avx512)
  if constexpr (kRows >= 3 && !kTail) return interleave_rows<kRows>(rows, column, c);
#endif
  IntVec fours{};
  LATHE_UNROLL
  for (int r = 0; r < kRows; ++r)
    fours |= load_bytes(rows.row[r] + column * rows.pitch[r] + c, kTail ? lanes : kLanes) << 8 * r;
  return fours;
}

// Vectors from a pixel's sums to the next one's.
constexpr int kPitch = kMaxTileColumns / kLanes;

// What sums begin with: finish_integers() wants them without their zeros.
LATHE_INLINE IntVec start_of(const Strip& strip, int64_t c) { return IntVec{} - load_int(strip.integers->zero + c); }

template <class Products>
struct IntegerSums {
  using Sum = IntVec;

  // Each loaded column serves all the taps that fall on it.
  template <int kKernel, int kStride, int kPixels, Checked kChecked, int kRows>
  LATHE_INLINE static void add_rows(const Strip& strip, int first, int64_t c, int lanes, IntVec (&sums)[kPixels]) {
    constexpr bool kEdge = kChecked != Checked::nothing, kTail = kChecked == Checked::pixels_and_channels;
    const IntVec flip = broadcast_int(strip.integers->flip);
    const FourRows& rows = static_cast<const IntegerStrip&>(strip).rows[first / 4];
    const auto* weights =
        reinterpret_cast<const int32_t*>(strip.weights) + first / 4 * kKernel * strip.weight_stride + c;
    IntVec w[kKernel];
    LATHE_UNROLL
    for (int k = 0; k < kKernel; ++k) w[k] = load_int(weights + k * strip.weight_stride);
    LATHE_UNROLL
    for (int j = 0; j < (kPixels - 1) * kStride + kKernel; ++j) {
      IntVec fours = flip;
      if (!kEdge || static_cast<uint64_t>(strip.corner[2] + j) < static_cast<uint64_t>(strip.in[2]))
        fours ^= load_fours<kRows, kTail>(rows, j, c, lanes);
      LATHE_UNROLL
      for (int p = 0; p < kPixels; ++p) {
        const int k = j - p * kStride;
        if (k >= 0 && k < kKernel) sums[p] = Products::add(sums[p], fours, w[k]);
      }
    }
  }

  template <int kKernel, int kStride, int kPixels, Checked kChecked>
  static void window(const Strip& strip, int64_t c, int lanes, IntVec* out) {
    IntVec sums[kPixels];
    const IntVec start = start_of(strip, c);
    LATHE_UNROLL
    for (int p = 0; p < kPixels; ++p) sums[p] = start;
    add_rows<kKernel, kStride, kPixels, kChecked, std::min(kKernel, 4)>(strip, 0, c, lanes, sums);
    if constexpr (kKernel > 4) add_rows<kKernel, kStride, kPixels, kChecked, kKernel - 4>(strip, 4, c, lanes, sums);
    LATHE_UNROLL
    for (int p = 0; p < kPixels; ++p) out[p * kPitch] = sums[p];
  }

  // Any kernel and dilation.
  template <bool kTail>
  static void any(const Strip& strip, int64_t c, int lanes, IntVec* sums) {
    const depthwise::Shape& shape = *strip.shape;
    const IntVec flip = broadcast_int(strip.integers->flip);
    for (int p = 0; p < strip.pixels; ++p) {
      const int64_t left = strip.corner[2] + p * shape.stride[2];
      const auto* weights = reinterpret_cast<const int32_t*>(strip.weights) + c;
      IntVec sum = start_of(strip, c);
      for (int64_t d = 0; d < shape.kernel[0]; ++d)
        for (int64_t h = 0; h < shape.kernel[1]; h += 4) {
          const FourRows rows = rows_of(strip, d, h, shape.kernel[1] - h, left);
          for (int64_t w = 0; w < shape.kernel[2]; ++w, weights += strip.weight_stride) {
            const int64_t column = w * shape.dilation[2];
            IntVec fours = flip;
            if (left + column >= 0 && left + column < strip.in[2])
              fours ^= load_fours<4, kTail>(rows, column, c, lanes);
            sum = Products::add(sum, fours, load_int(weights));
          }
        }
      sums[p * kPitch] = sum;
    }
  }
};

// Products of bytes have a function for each usual window. Those of 16 bits, of processors that lack the
// instruction, have one for all: the others would be a seventh of the library that only runs plans.
template <class Products>
SumFunctions<IntVec> sums_of(const Strip& strip) {
  if constexpr (!Products::kUnrolled)
    return {IntegerSums<Products>::template any<false>, IntegerSums<Products>::template any<true>};
  else
    return functions_of<IntegerSums<Products>>(strip);
}

template <class Products>
void run(const Strip& any_strip) {
  const IntegerStrip strip(any_strip);
  alignas(kVecBytes) int32_t scratch[kMaxPixels * kMaxTileColumns];
  const SumFunctions<IntVec> sum = sums_of<Products>(strip);
  for (int64_t block = strip.first_channel; block < strip.last_channel; block += kMaxTileColumns) {
    const int columns = static_cast<int>(std::min<int64_t>(kMaxTileColumns, strip.last_channel - block));
    for (int c = 0; c < columns; c += kLanes) {
      const int lanes = std::min(columns - c, kLanes);
      (lanes < kLanes ? sum.tail : sum.whole)(strip, block + c, lanes, reinterpret_cast<IntVec*>(scratch + c));
    }
    finish_integers(*strip.integers, *strip.where, scratch, kMaxTileColumns, strip.pixels, block, columns);
  }
}

}  // namespace

depthwise::StripFunction depthwise_integer_strip([[maybe_unused]] bool multiplies_bytes) {
#if defined(LATHE_ISA_LEVEL_avx512) || defined(LATHE_ISA_LEVEL_avx2)
  if (multiplies_bytes) return run<ByteProducts>;
#endif
  return run<ShortProducts>;
}

}  // namespace lathe::cpu::LATHE_ISA
