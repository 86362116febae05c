// SPDX-License-Identifier: Apache-2.0
// Ops that move elements: each output element finds its source. Types are unsigned integers of the elements' size.
#pragma once

#include "generic/element.cuh"

// Tensors with the same dims; `in` may be a permuted or broadcast view.
template <class In, class Out>
LATHE_DEVICE void move_elements(const In& in, const Out& out) {
  for_each_element(out, [&](const auto& c) { element(out, c) = element(in, c); });
}

// The same elements in the same order under other dims.
template <class In, class Out>
LATHE_DEVICE void reshape(const In& in, const Out& out) {
  for_each(volume_of(out), [&](long i) {
    long from[kCoordinates<In>], to[kCoordinates<Out>];
    unflatten(in, i, from);
    unflatten(out, i, to);
    element(out, to) = element(in, from);
  });
}

template <class In, class Out>
LATHE_DEVICE void tile(const In& in, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long from[kCoordinates<In>] = {};
    LATHE_UNROLL
    for (int i = 0; i < In::kRank; ++i) from[i] = c[i] % in.dim(i);
    element(out, c) = element(in, from);
  });
}

// place(d): which of starts and steps speak of dimension d; -1 = none.
template <class In, class Out, class Starts, class Steps, class Place>
LATHE_DEVICE void slice(const In& in, const Out& out, const Starts& starts, const Steps& steps, const Place& place) {
  for_each_element(out, [&](const auto& c) {
    long from[kCoordinates<In>] = {};
    LATHE_UNROLL
    for (int i = 0; i < In::kRank; ++i) {
      from[i] = c[i];
      if (place(i) < 0) continue;
      const long extent = in.dim(i), step = steps(static_cast<int>(place(i)));
      long start = starts(static_cast<int>(place(i)));
      if (start < 0) start = start < -extent ? 0 : start + extent;
      start = step > 0 ? clamp_to(start, 0, extent) : clamp_to(start, 0, extent > 0 ? extent - 1 : 0);
      from[i] = c[i] > 0 ? start + c[i] * step : start;  // a single element may have a step that overflows
    }
    element(out, c) = element(in, from);
  });
}

enum class PadKind { constant, reflect, edge, wrap };

// Where position j of a padded axis comes from; -1 = nowhere. Negative pads crop, what remains is extended.
template <PadKind kKind>
LATHE_DEVICE long pad_source(long extent, long begin, long end, long j) {
  const long low = begin < 0 ? -begin : 0, kept = extent - low - (end < 0 ? -end : 0);
  long i = j - (begin > 0 ? begin : 0);
  if (i >= 0 && i < kept) return i + low;
  if (kKind == PadKind::constant || kept <= 0) return -1;
  if (kKind == PadKind::edge) return clamp_to(i, 0, kept - 1) + low;
  const long reflected = 2 * (kept - 1) > 1 ? 2 * (kept - 1) : 1, period = kKind == PadKind::wrap ? kept : reflected;
  i = (i % period + period) % period;
  return (i >= kept ? period - i : i) + low;
}

// pads(place) in front of dimension d, pads(place + axes) behind it.
template <PadKind kKind, int kAxes, class In, class Out, class Pads, class Place>
LATHE_DEVICE void pad(const In& in, const Out& out, const Pads& pads, const Place& place,
                      const typename Out::Type* value) {
  for_each_element(out, [&](const auto& c) {
    long from[kCoordinates<In>] = {};
    bool inside = true;
    LATHE_UNROLL
    for (int i = 0; i < In::kRank; ++i) {
      const int at = static_cast<int>(place(i));
      from[i] = at < 0 ? c[i] : pad_source<kKind>(in.dim(i), pads(at), pads(at + kAxes), c[i]);
      inside &= from[i] >= 0;
    }
    element(out, c) = inside ? element(in, from) : value ? *value : typename Out::Type{0};
  });
}

// The part of a concatenation that `in` is, if c lies in it; `start` moves on to the next part.
template <int kAxis, class Out, class In, int N>
LATHE_DEVICE void concat_part(const Out& out, const long (&c)[N], long& start, const In& in) {
  const long extent = in.dim(kAxis);
  if (c[kAxis] >= start && c[kAxis] < start + extent) {
    long from[kCoordinates<In>];
    for (int i = 0; i < In::kRank; ++i) from[i] = c[i];
    from[kAxis] -= start;
    element(out, c) = element(in, from);
  }
  start += extent;
}
template <int kAxis, class Out, class... In>
LATHE_DEVICE void concat(const Out& out, const In&... in) {
  for_each_element(out, [&](const auto& c) {
    long start = 0;
    (concat_part<kAxis>(out, c, start, in), ...);
  });
}

template <int kAxis, class In, class Out, int N>
LATHE_DEVICE void split_part(const In& in, const long (&c)[N], long& start, const Out& out) {
  const long extent = out.dim(kAxis);
  if (c[kAxis] >= start && c[kAxis] < start + extent) {
    long to[kCoordinates<Out>];
    for (int i = 0; i < Out::kRank; ++i) to[i] = c[i];
    to[kAxis] -= start;
    element(out, to) = element(in, c);
  }
  start += extent;
}
template <int kAxis, class In, class... Out>
LATHE_DEVICE void split(const In& in, const Out&... out) {
  for_each_element(in, [&](const auto& c) {
    long start = 0;
    (split_part<kAxis>(in, c, start, out), ...);
  });
}

// Blocks of channels become blocks of pixels; kDepthFirst: a block's pixel is the slower part of the channel.
template <bool kDepthFirst, int kBlock, class In, class Out>
LATHE_DEVICE void depth_to_space(const In& in, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    const long pixel = c[2] % kBlock * kBlock + c[3] % kBlock;
    const long channel = kDepthFirst ? pixel * out.dim(1) + c[1] : c[1] * (kBlock * kBlock) + pixel;
    const long from[4] = {c[0], channel, c[2] / kBlock, c[3] / kBlock};
    element(out, c) = element(in, from);
  });
}
template <int kBlock, class In, class Out>
LATHE_DEVICE void space_to_depth(const In& in, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    const long channels = in.dim(1), pixel = c[1] / channels;
    const long from[4] = {c[0], c[1] % channels, c[2] * kBlock + pixel / kBlock, c[3] * kBlock + pixel % kBlock};
    element(out, c) = element(in, from);
  });
}

template <bool kUpper, class In, class Out, class K>
LATHE_DEVICE void trilu(const In& in, const Out& out, const K& k) {
  constexpr int kRow = Out::kRank - 2, kColumn = Out::kRank - 1;
  for_each_element(out, [&](const auto& c) {
    const long diagonal = c[kRow] + clamp_to(k(0), -out.dim(kRow), out.dim(kColumn));
    const bool kept = kUpper ? c[kColumn] >= diagonal : c[kColumn] <= diagonal;
    element(out, c) = kept ? element(in, c) : typename Out::Type{0};
  });
}
