// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "kernels/cpu/depthwise/windows.h"
#include "kernels/cpu/depthwise_integer/depthwise_integer.h"
#include "kernels/cpu/gemm/folded_levels.h"
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
LATHE_INLINE IntVec interleave_rows(const FourRows& rows, int64_t column, int64_t c) {
  const auto row = [&](int r) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows.row[r] + column * rows.pitch[r] + c));
  };
  __m512i quarters = _mm512_inserti32x4(_mm512_zextsi128_si512(row(0)), row(1), 1);
  quarters = _mm512_inserti32x4(quarters, row(2), 2);
  quarters = _mm512_inserti32x4(quarters, row(3), 3);
  const __m512i fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
  return reinterpret_cast<IntVec>(_mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, quarters), bytes));
}
#endif

// The channels of one column, four rows in each lane.
template <int kRows, bool kTail>
LATHE_INLINE IntVec load_fours(const FourRows& rows, int64_t column, int64_t c, int lanes) {
#if defined(LATHE_ISA_LEVEL_avx512)
  if constexpr (kRows == 4 && !kTail) return interleave_rows(rows, column, c);
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

// Windows of 3 x 3: four vectors of channels at a time, whose rows lie in turns (see ByteOrder), and their weights,
// what sums begin with, scales and offsets in the order of such.
constexpr int kBlock = 4 * kLanes;
static_assert(kMaxTileColumns % kBlock == 0);
enum Ordered { weights, start = 3, scale, offset, count };
struct Block {
  IntVec vector[4];
};

LATHE_INLINE Block load_ordered(const int32_t* block, int row) {
  Block result;
  LATHE_UNROLL
  for (int v = 0; v < 4; ++v) result.vector[v] = load_int(block + row * kBlock + v * kLanes);
  return result;
}

// The first n channels of one column after the other; of pairs, of a column and of the one behind it, so that few
// channels fill a vector.
struct Columns {
  LATHE_INLINE Columns(const IntegerStrip& strip, int64_t c, int n, bool pairs)
      : flip(broadcast_int(strip.integers->flip)), at(strip.corner[2]), size(strip.in[2]), n(n), pairs(pairs) {
    for (int r = 0; r < 3; ++r) row[r] = strip.rows[0].row[r] + c, pitch[r] = strip.rows[0].pitch[r];
  }
  LATHE_INLINE bool inside(int64_t column) const { return static_cast<uint64_t>(column) < static_cast<uint64_t>(size); }
  LATHE_INLINE Block next() {
    const int begin = pairs && !inside(at) ? n : 0;
    const int end = pairs ? inside(at + 1) ? 2 * n : n : inside(at) ? n : 0;
    ++at;
    IntVec bytes[4] = {flip, flip, flip, IntVec{}};
    if (begin < end) {
      LATHE_UNROLL
      for (int r = 0; r < 3; ++r) bytes[r] ^= load_vector_of_bytes(row[r], begin, end);
    }
    LATHE_UNROLL
    for (int r = 0; r < 3; ++r) row[r] += pitch[r];
    Block fours;
    interleave(bytes, fours.vector);
    return fours;
  }
  const uint8_t* row[3];
  int64_t pitch[3];
  IntVec flip;
  int64_t at, size;
  int n;
  bool pairs;
};

// Whether channels are few enough for two pixels in a block.
LATHE_INLINE bool has_pairs(int64_t channels) { return channels % 4 == 0 && 2 * channels <= kBlock; }

// Sums of the first n channels from c on become levels, or lie in `scratch` where there is any. Pairs of pixels are
// windows with a stride of 2.
template <class Products, int kStride>
void sum_block(const IntegerStrip& strip, int64_t c, int n, bool in_pairs, int32_t* scratch) {
  const bool pairs = kStride == 2 && in_pairs;
  const FoldedLevels<Between::none, void> level(strip.integers->folded);
  const int32_t* ordered = strip.ordered + c * Ordered::count;
  const Block weights[3] = {load_ordered(ordered, 0), load_ordered(ordered, 1), load_ordered(ordered, 2)};
  Columns columns(strip, c, n, pairs);
  // What the next pixel reads as well.
  Block first{}, second{};
  if constexpr (kStride == 1) first = columns.next();
  second = columns.next();
  auto* out = reinterpret_cast<std::byte*>(strip.where->out[0]) + c;
  const int step = pairs ? 2 : 1;
  for (int p = strip.pixels; p > 0; p -= step, out += step * strip.out_step) {
    if constexpr (kStride == 2) first = second, second = columns.next();
    const Block third = columns.next();
    IntVec sums[4];
    LATHE_UNROLL
    for (int v = 0; v < 4; ++v) {
      sums[v] = load_int(ordered + Ordered::start * kBlock + v * kLanes);
      sums[v] = Products::add(sums[v], first.vector[v], weights[0].vector[v]);
      sums[v] = Products::add(sums[v], second.vector[v], weights[1].vector[v]);
      sums[v] = Products::add(sums[v], third.vector[v], weights[2].vector[v]);
    }
    if constexpr (kStride == 1) first = second;
    second = third;
    if (scratch) {
      LATHE_UNROLL
      for (int i = 0; i < kLanes; ++i)
        std::memcpy(scratch + 4 * i, reinterpret_cast<const int32_t*>(sums) + i % 4 * kLanes + i / 4 * 4,
                    4 * sizeof(int32_t));
      scratch += kMaxTileColumns;
      continue;
    }
    LATHE_UNROLL
    for (int v = 0; v < 4; ++v)
      sums[v] = level(sums[v], as_float(load_int(ordered + Ordered::scale * kBlock + v * kLanes)),
                      as_float(load_int(ordered + Ordered::offset * kBlock + v * kLanes)), nullptr, kLanes);
    store_packed<ByteOrder::in_turns>(out, sums, pairs && p > 1 ? 2 * n : n, level.packing);
  }
}

template <class Products>
void run_blocks(const IntegerStrip& strip) {
  alignas(kVecBytes) int32_t scratch[kMaxPixels * kMaxTileColumns];
  const int64_t channels = strip.shape->channels, stride = strip.shape->stride[2];
  const bool pairs = strip.makes_levels && stride == 1 && has_pairs(channels) && strip.in_stride[2] == channels &&
                     strip.out_step == channels;
  const auto sum = stride == 1 && !pairs ? sum_block<Products, 1> : sum_block<Products, 2>;
  for (int64_t tile = strip.first_channel; tile < strip.last_channel; tile += kMaxTileColumns) {
    const int columns = static_cast<int>(std::min<int64_t>(kMaxTileColumns, strip.last_channel - tile));
    for (int c = 0; c < columns; c += kBlock)
      sum(strip, tile + c, std::min(columns - c, kBlock), pairs, strip.makes_levels ? nullptr : scratch + c);
    if (!strip.makes_levels)
      finish_integers(*strip.integers, *strip.where, scratch, kMaxTileColumns, strip.pixels, tile, columns);
  }
}

// Products of bytes have a function for each other usual window. Those of 16 bits, of processors that lack the
// instruction, have one for all: the others would be a seventh of the library that only runs plans.
template <class Products>
SumFunctions<IntVec> sums_of(const Strip& strip) {
  if constexpr (Products::kUnrolled)
    return functions_of<IntegerSums<Products>, 5>(strip);
  else
    return {IntegerSums<Products>::template any<false>, IntegerSums<Products>::template any<true>};
}

template <class Products>
void run(const Strip& any_strip) {
  const IntegerStrip strip(any_strip);
  if (strip.ordered) return run_blocks<Products>(strip);
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

void order_channels(const Strip& strip, int64_t channels, int32_t* to) {
  const gemm::IntegerEpilogue& integers = *strip.integers;
  const auto* weights = reinterpret_cast<const int32_t*>(strip.weights);
  const void* rows[Ordered::count] = {weights,
                                      weights + strip.weight_stride,
                                      weights + 2 * strip.weight_stride,
                                      integers.zero,
                                      integers.scale,
                                      integers.folded.offset ? integers.folded.offset : integers.scale};
  for (int64_t block = 0; block < channels; block += kBlock, to += Ordered::count * kBlock) {
    const bool whole = block + kBlock <= strip.weight_stride && !has_pairs(channels);
    for (int r = 0; r < Ordered::count; ++r) {
      const int32_t* row = static_cast<const int32_t*>(rows[r]) + block;
      LATHE_UNROLL
      for (int i = 0; i < kLanes; ++i) {
        int64_t c = i % (kLanes / 4) * 16 + i / (kLanes / 4) * 4;
        if (!whole && block + c >= channels && has_pairs(channels)) c -= channels;
        int32_t* four = to + r * kBlock + 4 * i;
        if (whole || block + c < strip.weight_stride)
          std::memcpy(four, row + c, 4 * sizeof(int32_t));
        else
          std::memset(four, 0, 4 * sizeof(int32_t));
      }
    }
    for (int32_t* start = to + Ordered::start * kBlock; start < to + Ordered::scale * kBlock; start += kLanes)
      store_int(start, IntVec{} - load_int(start));
  }
}

}  // namespace lathe::cpu::LATHE_ISA
