// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters. An index that lies outside (lib/indices.cuh) reads as 0, and an update to it is dropped.
// Repeated indices act in their order.
#pragma once

#include "generic/element.cuh"
#include "lib/indices.cuh"

template <int kAxis, class Data, class Indices, class Out>
LATHE_DEVICE void gather(const Data& data, const Indices& indices, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long at[kCoordinates<Indices>] = {}, from[kCoordinates<Data>] = {};
    LATHE_UNROLL
    for (int i = 0; i < Indices::kRank; ++i) at[i] = c[kAxis + i];
    LATHE_UNROLL
    for (int i = 0; i < Data::kRank; ++i) from[i] = c[i < kAxis ? i : i == kAxis ? 0 : i - 1 + Indices::kRank];
    from[kAxis] = wrapped_index(element(indices, at), data.dim(kAxis));
    element(out, c) = from[kAxis] < 0 ? typename Out::Type{0} : element(data, from);
  });
}

template <int kAxis, class Data, class Indices, class Out>
LATHE_DEVICE void gather_elements(const Data& data, const Indices& indices, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long from[kCoordinates<Data>];
    LATHE_UNROLL
    for (int i = 0; i < Data::kRank; ++i) from[i] = c[i];
    from[kAxis] = wrapped_index(element(indices, c), data.dim(kAxis));
    element(out, c) = from[kAxis] < 0 ? typename Out::Type{0} : element(data, from);
  });
}

// Fills the coordinates kBatch .. kBatch + kDepth of `position` from the tuple at c[0 .. rank of indices - 1]; false
// when it lies outside.
template <int kBatch, int kDepth, class Data, class Indices, int N, int M>
LATHE_DEVICE bool read_tuple(const Data& data, const Indices& indices, const long (&c)[N], long (&position)[M]) {
  long at[kCoordinates<Indices>];
  LATHE_UNROLL
  for (int i = 0; i + 1 < Indices::kRank; ++i) at[i] = c[i];
  bool inside = true;
  LATHE_UNROLL
  for (int k = 0; k < kDepth; ++k) {
    at[Indices::kRank - 1] = k;
    position[kBatch + k] = wrapped_index(element(indices, at), data.dim(kBatch + k));
    inside &= position[kBatch + k] >= 0;
  }
  return inside;
}

template <int kBatch, int kDepth, class Data, class Indices, class Out>
LATHE_DEVICE void gather_nd(const Data& data, const Indices& indices, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long from[kCoordinates<Data>] = {};
    LATHE_UNROLL
    for (int i = 0; i < kBatch; ++i) from[i] = c[i];
    LATHE_UNROLL
    for (int i = kBatch + kDepth; i < Data::kRank; ++i) from[i] = c[Indices::kRank - 1 + i - kBatch - kDepth];
    const bool inside = read_tuple<kBatch, kDepth>(data, indices, c, from);
    element(out, c) = inside ? element(data, from) : typename Out::Type{0};
  });
}

// What a reduction makes of the value that is there and an update. `mode` is an enumeration of the attributes.
template <class A, class T>
LATHE_DEVICE T combine(T a, T b) {
  using Mode = typename A::reduction_type;
  if constexpr (is_same<T, bool>) {
    if constexpr (A::reduction == Mode::add || A::reduction == Mode::max) return a || b;
    if constexpr (A::reduction == Mode::mul || A::reduction == Mode::min) return a && b;
  } else if constexpr (is_float<T>) {
    if constexpr (A::reduction == Mode::add) return a + b;
    if constexpr (A::reduction == Mode::mul) return a * b;
  } else {
    if constexpr (A::reduction == Mode::add) return static_cast<T>(static_cast<uint64>(a) + static_cast<uint64>(b));
    if constexpr (A::reduction == Mode::mul) return static_cast<T>(static_cast<uint64>(a) * static_cast<uint64>(b));
  }
  if constexpr (A::reduction == Mode::max && !is_same<T, bool>) return b > a || b != b ? b : a;  // NaN wins
  if constexpr (A::reduction == Mode::min && !is_same<T, bool>) return b < a || b != b ? b : a;
  return b;
}

// Where sums are kept: the output itself, or for 16-bit floats an f32 buffer of the output's dims, dense.
template <class Out>
struct InPlace {
  Out out;
  template <int N>
  LATHE_DEVICE_MEMBER typename Out::Type& operator()(const long (&c)[N]) const {
    return element(out, c);
  }
};
template <class Out>
struct InBuffer {
  Out out;
  float* sums;
  template <int N>
  LATHE_DEVICE_MEMBER float& operator()(const long (&c)[N]) const {
    long flat = 0;
    LATHE_UNROLL
    for (int i = 0; i < Out::kRank; ++i) flat = flat * out.dim(i) + c[i];
    return sums[flat];
  }
};
template <class T, class From>
LATHE_DEVICE T as_sum(From value) {
  if constexpr (is_same<T, From>)
    return value;
  else
    return to_float(value);
}

template <class Data, class Out, class Sums>
LATHE_DEVICE void scatter_begin(const Data& data, const Out& out, const Sums& sums) {
  for_each_element(out, [&](const auto& c) {
    auto& sum = sums(c);
    sum = as_sum<typename remove_reference_of<decltype(sum)>::Type>(element(data, c));
  });
}
template <class Out, class Sums>
LATHE_DEVICE void scatter_end(const Out& out, const Sums& sums) {
  for_each_element(out, [&](const auto& c) { element(out, c) = from_float<typename Out::Type>(sums(c)); });
}

// A thread per line of updates: those along the axis are the only ones that can write to the same elements.
template <class A, int kAxis, class Indices, class Updates, class Out, class Sums>
LATHE_DEVICE void scatter_elements(const Indices& indices, const Updates& updates, const Out& out, const Sums& sums) {
  for_each(count_lines(indices, kAxis), [&](long line) {
    long c[kCoordinates<Out>], to[kCoordinates<Out>];
    line_coordinates(indices, kAxis, line, c);
    LATHE_UNROLL
    for (int i = 0; i < Out::kRank; ++i) to[i] = c[i];
    for (c[kAxis] = 0; c[kAxis] < indices.dim(kAxis); ++c[kAxis]) {
      to[kAxis] = wrapped_index(element(indices, c), out.dim(kAxis));
      if (to[kAxis] < 0) continue;
      auto& sum = sums(to);
      using T = typename remove_reference_of<decltype(sum)>::Type;
      sum = combine<A>(sum, as_sum<T>(element(updates, c)));
    }
  });
}

// Slices along an axis, from first(batch entry) on if they are placed, else from 0; of several for one place the last
// one is written.
template <int kAxis, bool kCircular, bool kPlaced, class Update, class First, class Out>
LATHE_DEVICE void tensor_scatter(const Update& update, const First& first, const Out& out) {
  for_each_element(update, [&](const auto& c) {
    const long extent = out.dim(kAxis);
    long to[kCoordinates<Out>];
    LATHE_UNROLL
    for (int i = 0; i < Out::kRank; ++i) to[i] = c[i];
    long start = kPlaced ? long(first(c[0])) : 0;
    if constexpr (kCircular) {
      if (update.dim(kAxis) - c[kAxis] > extent) return;
      start = (start % extent + extent) % extent;  // before the sum, which has no room for the greatest of all indices
      to[kAxis] = (start + to[kAxis]) % extent;
    } else {
      if (start < 0 || start >= extent - to[kAxis]) return;
      to[kAxis] += start;
    }
    element(out, to) = element(update, c);
  });
}

// A thread per element of the sub-tensors that tuples name: it takes the tuples in order.
template <class A, int kDepth, class Indices, class Updates, class Out, class Sums>
LATHE_DEVICE void scatter_nd(const Indices& indices, const Updates& updates, const Out& out, const Sums& sums) {
  constexpr int kTuple = Indices::kRank - 1;  // dimensions of updates that count tuples
  long run = 1, tuples = 1;
  for (int i = kDepth; i < Out::kRank; ++i) run *= out.dim(i);
  for (int i = 0; i < kTuple; ++i) tuples *= indices.dim(i);
  for_each(run, [&](long index) {
    long to[kCoordinates<Out>] = {}, from[kCoordinates<Updates>] = {};
    for (int i = Out::kRank - 1; i >= kDepth; --i) {
      to[i] = from[kTuple + i - kDepth] = index % out.dim(i);
      index /= out.dim(i);
    }
    for (long tuple = 0; tuple < tuples; ++tuple) {
      long rest = tuple;
      for (int i = kTuple - 1; i >= 0; --i) {
        from[i] = rest % indices.dim(i);
        rest /= indices.dim(i);
      }
      if (!read_tuple<0, kDepth>(out, indices, from, to)) continue;
      auto& sum = sums(to);
      using T = typename remove_reference_of<decltype(sum)>::Type;
      sum = combine<A>(sum, as_sum<T>(element(updates, from)));
    }
  });
}

// Without a reduction the last tuple wins, and all can be looked at together: a table of the output's sub-tensors (in
// the first kDepth dimensions) remembers the largest number, counted from 1, of a tuple that names each.
template <class Out>
LATHE_DEVICE long count_subtensors(const Out& out, int depth) {
  long count = 1;
  for (int i = 0; i < depth; ++i) count *= out.dim(i);
  return count;
}
template <int kDepth, class Out>
LATHE_DEVICE void scatter_nd_clear(const Out& out, int* winners) {
  for_each(count_subtensors(out, kDepth), [&](long i) { winners[i] = 0; });
}
// The tuple of that number, which is at c[0 .. rank of indices - 2]; false when it lies outside.
template <int kDepth, class Indices, class Out, int N, int M>
LATHE_DEVICE bool numbered_tuple(const Out& out, const Indices& indices, long number, long (&c)[N],
                                 long (&position)[M]) {
  for (int i = Indices::kRank - 2; i >= 0; --i) {
    c[i] = number % indices.dim(i);
    number /= indices.dim(i);
  }
  return read_tuple<0, kDepth>(out, indices, c, position);
}
template <class Indices>
LATHE_DEVICE long count_tuples(const Indices& indices) {
  long tuples = 1;
  for (int i = 0; i + 1 < Indices::kRank; ++i) tuples *= indices.dim(i);
  return tuples;
}
template <int kDepth, class Indices, class Out>
LATHE_DEVICE void scatter_nd_claim(const Indices& indices, const Out& out, int* winners) {
  for_each(count_tuples(indices), [&](long tuple) {
    long c[kCoordinates<Indices>] = {}, position[kCoordinates<Out>] = {};
    if (!numbered_tuple<kDepth>(out, indices, tuple, c, position)) return;
    long flat = 0;
    for (int i = 0; i < kDepth; ++i) flat = flat * out.dim(i) + position[i];
    atomic_max(winners + flat, static_cast<int>(tuple) + 1);
  });
}
template <int kDepth, class Data, class Indices, class Updates, class Out>
LATHE_DEVICE void scatter_nd_write(const Data& data, const Indices& indices, const Updates& updates, const Out& out,
                                   const int* winners) {
  for_each_element(out, [&](const auto& c) {
    long flat = 0;
    for (int i = 0; i < kDepth; ++i) flat = flat * out.dim(i) + c[i];
    if (winners[flat] == 0) {
      element(out, c) = element(data, c);
      return;
    }
    long rest = winners[flat] - 1, from[kCoordinates<Updates>] = {};
    for (int i = Indices::kRank - 2; i >= 0; --i) {
      from[i] = rest % indices.dim(i);
      rest /= indices.dim(i);
    }
    for (int i = kDepth; i < Out::kRank; ++i) from[Indices::kRank - 1 + i - kDepth] = c[i];
    element(out, c) = element(updates, from);
  });
}

// The same into what is there, a block for each tuple: those that a later tuple repeats write nothing.
template <int kDepth, class Indices, class Updates, class Out>
LATHE_DEVICE void scatter_nd_in_place(const Indices& indices, const Updates& updates, const Out& out) {
  int* const repeated = reinterpret_cast<int*>(dynamic_shared());
  if (thread_x() == 0) *repeated = 0;
  dependency_wait();
  barrier();
  const long tuple = block_x(), tuples = count_tuples(indices);
  long from[kCoordinates<Updates>] = {}, to[kCoordinates<Out>] = {};
  if (!numbered_tuple<kDepth>(out, indices, tuple, from, to)) return;
  for (long later = tuple + 1 + thread_x(); later < tuples; later += block_threads()) {
    long c[kCoordinates<Indices>] = {}, position[kCoordinates<Out>] = {};
    bool is_same = numbered_tuple<kDepth>(out, indices, later, c, position);
    for (int i = 0; i < kDepth; ++i) is_same &= position[i] == to[i];
    if (is_same) *repeated = 1;
  }
  barrier();
  if (*repeated != 0) return;
  long run = 1;
  for (int i = kDepth; i < Out::kRank; ++i) run *= out.dim(i);
  for (long index = thread_x(); index < run; index += block_threads()) {
    long rest = index;
    for (int i = Out::kRank - 1; i >= kDepth; --i) {
      to[i] = from[Indices::kRank - 1 + i - kDepth] = rest % out.dim(i);
      rest /= out.dim(i);
    }
    element(out, to) = element(updates, from);
  }
}
