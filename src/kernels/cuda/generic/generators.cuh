// SPDX-License-Identifier: Apache-2.0
// Ops that make tensors of nothing but numbers.
#pragma once

#include "generic/element.cuh"

template <class Out>
LATHE_DEVICE void fill(const Out& out, typename Out::Type value) {
  for_each_element(out, [&](const auto& c) { element(out, c) = value; });
}

// Element i is values(i): shapes, sizes, small constants.
template <class Out, class Values>
LATHE_DEVICE void write_values(const Out& out, const Values& values) {
  for_each_element(out, [&](const auto& c) {
    element(out, c) = narrow<typename Out::Type>(values(static_cast<int>(Out::kRank > 0 ? c[0] : 0)));
  });
}

template <class Start, class Delta, class Out>
LATHE_DEVICE void range(const Start& start, const Delta& delta, const Out& out) {
  using W = Wide<typename Out::Type>;
  for_each_element(out, [&](const auto& c) {
    const W first = widen_to<W>(start.data[0]), step = widen_to<W>(delta.data[0]);
    if constexpr (is_same<W, double>)
      element(out, c) = narrow<typename Out::Type>(first + static_cast<double>(c[0]) * step);
    else
      element(out, c) = narrow<typename Out::Type>(static_cast<uint64>(first) +
                                                   static_cast<uint64>(c[0]) * static_cast<uint64>(step));
  });
}

template <class Out>
LATHE_DEVICE void eye(const Out& out, long k) {
  for_each_element(
      out, [&](const auto& c) { element(out, c) = narrow<typename Out::Type>(static_cast<int64>(c[1] - c[0] == k)); });
}

// values[1] where the index along kAxis is the one that `indices` names, values[0] elsewhere.
template <int kAxis, class Indices, class Values, class Out>
LATHE_DEVICE void one_hot(const Indices& indices, const Values& values, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long from[kCoordinates<Indices>] = {};
    LATHE_UNROLL
    for (int i = 0; i < Indices::kRank; ++i) from[i] = c[i < kAxis ? i : i + 1];
    long index = widen_to<int64>(element(indices, from));
    if (index < 0) index += out.dim(kAxis);
    element(out, c) = values.data[index == c[kAxis] ? values.stride(0) : 0];
  });
}
