// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/winograd.h"

#include "kernels/cpu/simd.h"

namespace lathe::cpu::LATHE_ISA {
namespace {

using conv::WinogradInput;
using conv::WinogradOutput;

// One dimension of the transforms, for the points 0, 1, -1 (2, -2), infinity.
template <int kOutputs>
struct Transform;

template <>
struct Transform<2> {
  static LATHE_INLINE void input(const Vec* d, int step, Vec* t) {
    const Vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    t[0] = d0 - d2;
    t[step] = d1 + d2;
    t[2 * step] = d2 - d1;
    t[3 * step] = d1 - d3;
  }
  static LATHE_INLINE void output(const Vec* m, int step, Vec* y, int y_step) {
    const Vec m1 = m[step], m2 = m[2 * step];
    y[0] = m[0] + m1 + m2;
    y[y_step] = m1 - m2 - m[3 * step];
  }
};

template <>
struct Transform<4> {
  static LATHE_INLINE void input(const Vec* d, int step, Vec* t) {
    const Vec d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
    const Vec a = d4 - d2 * 4.0f, b = d3 - d1 * 4.0f, c = d4 - d2, e = (d3 - d1) * 2.0f;
    t[0] = d0 * 4.0f - d2 * 5.0f + d4;
    t[step] = a + b;
    t[2 * step] = a - b;
    t[3 * step] = c + e;
    t[4 * step] = c - e;
    t[5 * step] = d1 * 4.0f - d3 * 5.0f + d5;
  }
  static LATHE_INLINE void output(const Vec* m, int step, Vec* y, int y_step) {
    const Vec m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step];
    const Vec s = m1 + m2, d = m1 - m2, s2 = m3 + m4, d2 = m3 - m4;
    y[0] = m[0] + s + s2;
    y[y_step] = d + d2 * 2.0f;
    y[2 * y_step] = s + s2 * 4.0f;
    y[3 * y_step] = d + d2 * 8.0f + m[5 * step];
  }
};

// `inside` says that the whole tile lies in the image, so that nothing needs to be checked.
template <int kOutputs, bool kInside, bool kTail>
LATHE_INLINE void transform_channels(const WinogradInput& in, int64_t c, int lanes) {
  constexpr int kSide = kOutputs + 2;
  Vec tile[kSide * kSide];
  for (int i = 0; i < kSide; ++i) {
    const bool row_inside = static_cast<uint64_t>(in.row + i) < static_cast<uint64_t>(in.rows);
    const float* row = in.x + i * in.row_stride + c;
    LATHE_UNROLL
    for (int j = 0; j < kSide; ++j) {
      const bool valid =
          kInside || (row_inside && static_cast<uint64_t>(in.column + j) < static_cast<uint64_t>(in.columns));
      const float* p = row + j * in.pixel_stride;
      tile[i * kSide + j] = !valid ? zero() : kTail ? load_tail(p, lanes) : load(p);
    }
    Transform<kOutputs>::input(tile + i * kSide, 1, tile + i * kSide);
  }
  float* out = in.out + c;
  for (int j = 0; j < kSide; ++j) {
    Transform<kOutputs>::input(tile + j, kSide, tile + j);
    LATHE_UNROLL
    for (int i = 0; i < kSide; ++i) {
      float* p = out + (i * kSide + j) * in.product_stride;
      if (kTail)
        store_tail(p, lanes, tile[i * kSide + j]);
      else
        store(p, tile[i * kSide + j]);
    }
  }
}

template <int kOutputs, bool kInside>
void transform_input(const WinogradInput& in) {
  int64_t c = 0;
  for (; c + kLanes <= in.channels; c += kLanes) transform_channels<kOutputs, kInside, false>(in, c, kLanes);
  if (c < in.channels) transform_channels<kOutputs, kInside, true>(in, c, static_cast<int>(in.channels - c));
}

template <int kOutputs>
void transform_input(const WinogradInput& in) {
  constexpr int kSide = kOutputs + 2;
  if (in.row >= 0 && in.column >= 0 && in.row + kSide <= in.rows && in.column + kSide <= in.columns)
    transform_input<kOutputs, true>(in);
  else
    transform_input<kOutputs, false>(in);
}

template <int kOutputs>
void transform_output(const WinogradOutput& out) {
  constexpr int kSide = kOutputs + 2;
  for (int c = 0; c < out.columns; c += kLanes) {
    Vec half[kOutputs * kSide];  // [output row][product column]
    for (int j = 0; j < kSide; ++j) {
      Vec column[kSide];
      LATHE_UNROLL
      for (int i = 0; i < kSide; ++i) column[i] = load(out.products + (i * kSide + j) * out.product_stride + c);
      Transform<kOutputs>::output(column, 1, half + j, kSide);
    }
    for (int i = 0; i < kOutputs; ++i) {
      Vec row[kOutputs];
      Transform<kOutputs>::output(half + i * kSide, 1, row, 1);
      LATHE_UNROLL
      for (int j = 0; j < kOutputs; ++j) store(out.out + (i * kOutputs + j) * out.out_stride + c, row[j]);
    }
  }
}

}  // namespace

void winograd_input(int outputs, const WinogradInput& input) {
  outputs == 4 ? transform_input<4>(input) : transform_input<2>(input);
}
void winograd_output(int outputs, const WinogradOutput& output) {
  outputs == 4 ? transform_output<4>(output) : transform_output<2>(output);
}

}  // namespace lathe::cpu::LATHE_ISA
