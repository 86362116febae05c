// SPDX-License-Identifier: Apache-2.0
// Maximum pooling of 8-bit integers and 16-bit floats along their channels, two of which one instruction compares: as
// floats, most of the time would go into making them such, and integers again.
#pragma once

#include "pooling/pooling.cuh"

// The larger of both pairs of 16 bits; NaN where either is.
template <class Lane>
LATHE_DEVICE uint32 larger_pair(uint32 a, uint32 b) {
#if defined(__CUDA_ARCH__)
#define LATHE_LARGER(type) asm("max." type " %0, %0, %1;" : "+r"(a) : "r"(b))
  if constexpr (is_same<Lane, int16>) LATHE_LARGER("s16x2");
  if constexpr (is_same<Lane, uint16>) LATHE_LARGER("u16x2");
  if constexpr (is_same<Lane, f16>) LATHE_LARGER("NaN.f16x2");
  if constexpr (is_same<Lane, bf16>) LATHE_LARGER("NaN.bf16x2");
#undef LATHE_LARGER
  return a;
#else
  Vec<Lane, 2> first = bit_cast<Vec<Lane, 2>>(a);
  const auto second = bit_cast<Vec<Lane, 2>>(b);
  LATHE_UNROLL
  for (int i = 0; i < 2; ++i) {
    const float total = to_float(first.at[i]), x = to_float(second.at[i]);
    if (x > total || x != x) first.at[i] = second.at[i];
  }
  return bit_cast<uint32>(first);
#endif
}

// What such a pair is of.
template <class T>
struct PairLane {
  using Type = T;
};
template <>
struct PairLane<int8> {
  using Type = int16;
};
template <>
struct PairLane<uint8> {
  using Type = uint16;
};

// The maxima of the elements of a word.
template <class T>
struct WordMax {
  static constexpr bool kBytes = sizeof(T) == 1;
  static_assert(is_same<T, int8> || is_same<T, uint8> || is_same<T, f16> || is_same<T, bf16>, "pairs of 16 bits");

  LATHE_DEVICE_MEMBER void take(uint32 word) {
    if constexpr (kBytes) {  // the upper byte of a pair decides, whatever is below
      odd_ = larger_pair<Lane>(odd_, word);
      even_ = larger_pair<Lane>(even_, word << 8);
    } else {
      odd_ = larger_pair<Lane>(odd_, word);
    }
  }
  LATHE_DEVICE_MEMBER uint32 word() const { return kBytes ? (odd_ & 0xff00ff00u) | (even_ >> 8 & 0x00ff00ffu) : odd_; }

 private:
  using Lane = typename PairLane<T>::Type;
  // The least of a type: of floats, -infinity.
  static constexpr uint32 kLeast = is_same<T, int8>    ? 0x80008000u
                                   : is_same<T, uint8> ? 0
                                   : is_same<T, f16>   ? 0xfc00fc00u
                                                       : 0xff80ff80u;
  uint32 odd_ = kLeast, even_ = kLeast;
};

// As pool<MaxPool>, of whole vectors of W elements along the last dimension, which is not pooled.
template <class Window, int kTaps, int Threads, int W, class In, class Out, class Fusion>
LATHE_DEVICE void max_pool(const In& x, const Out& y, const Fusion& fusion) {
  using T = typename In::Type;
  constexpr int R = Out::kRank, kWords = W * static_cast<int>(sizeof(T)) / 4, kAtOnce = kTaps <= 9 ? kTaps : 4;
  static_assert(Window::is_whole(R - 1) && kWords > 0, "words of the dimension that stays");
  using Words = Vec<uint32, kWords>;
  dependency_wait();
  const long run = static_cast<long>(block_x()) * Threads + thread_x();
  if (run >= count_vectors<W, long>(y)) return;
  long c[R];
  vector_coordinates<W, long>(y, run, c);
  WordMax<T> maxima[kWords];
  const auto take = [&](int first, int count) {
    Words words[kAtOnce];
    bool inside[kAtOnce];
    LATHE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      long at[R], tap = first + i;
      inside[i] = i < count;
      at[R - 1] = c[R - 1];
      LATHE_UNROLL
      for (int d = R - 2; d >= 0; --d) {
        const TapPosition position = locate_tap<MaxPool, Window>(x, d, c[d], tap % Window::kernel(d));
        tap /= Window::kernel(d);
        at[d] = position.at;
        inside[i] = inside[i] && position.inside;
      }
      if (inside[i]) words[i] = bit_cast<Words>(load_vector<W>(x.data + offset_of(x, at)));
    }
    LATHE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) LATHE_UNROLL
    for (int j = 0; j < kWords; ++j)
      if (inside[i]) maxima[j].take(words[i].at[j]);
  };
  if constexpr (kTaps == kAtOnce) {
    take(0, kTaps);
  } else {
    LATHE_NO_UNROLL
    for (int first = 0; first < kTaps; first += kAtOnce) take(first, kTaps - first);
  }
  Words result;
  LATHE_UNROLL
  for (int j = 0; j < kWords; ++j) result.at[j] = maxima[j].word();
  const auto elements = bit_cast<Vec<T, W>>(result);
  if constexpr (Fusion::kIdentity && is_same<T, typename Out::Type>) {
    store_vector(y.data + offset_of(y, c), elements);
  } else {
    float v[W];
    LATHE_UNROLL
    for (int j = 0; j < W; ++j) v[j] = to_float(elements.at[j]);
    fusion.template apply<R - 1, W>(v, c, W);
    store<R - 1, W>(y, c, v, W);
  }
}
