// SPDX-License-Identifier: Apache-2.0
// Which elements are chosen, and where they go. Flags are functions of a flat position. Three launches list the chosen
// positions in order, their number at the end of the list: each block counts its part, one block adds up, each block
// writes its positions.
#pragma once

#include "generic/element.cuh"

constexpr int kSelectThreads = 256;
constexpr int kSelectRounds = 16;  // positions of a thread

template <class Tensor>
struct NonzeroFlags {
  Tensor tensor;
  LATHE_DEVICE_MEMBER bool operator()(long position) const {
    long c[kCoordinates<Tensor>];
    unflatten(tensor, position, c);
    const auto value = element(tensor, c);
    if constexpr (is_float<typename Tensor::Type>)
      return !(widen(value) == 0);
    else
      return value != 0;
  }
};

// How many threads of the block before this one have the flag; `total`: how many in all. `warps` holds one int for each
// warp.
LATHE_DEVICE int rank_in_block(bool flag, int* warps, int& total) {
  const unsigned mask = ballot(flag);
  barrier();  // the last round's counts are read
  if (lane() == 0) warps[warp()] = count_bits(mask);
  barrier();
  int before = count_bits(mask & ((1u << lane()) - 1u));
  total = 0;
  for (int i = 0; i < kSelectThreads / 32; ++i) {
    if (i < warp()) before += warps[i];
    total += warps[i];
  }
  return before;
}

// Calls visit(position, flag) for the positions of the block, all threads in step.
template <class Flags, class F>
LATHE_DEVICE void visit_block(const Flags& flags, long count, F visit) {
  const long first = static_cast<long>(block_x()) * (kSelectThreads * kSelectRounds);
  for (int round = 0; round < kSelectRounds; ++round) {
    const long position = first + round * kSelectThreads + thread_x();
    visit(position, position < count && flags(position));
  }
}

template <class Flags>
LATHE_DEVICE void select_count(const Flags& flags, long count, long* counts) {
  dependency_wait();
  int* const warps = reinterpret_cast<int*>(dynamic_shared());
  long sum = 0;
  visit_block(flags, count, [&](long, bool flag) {
    int total;
    rank_in_block(flag, warps, total);
    sum += total;
  });
  if (thread_x() == 0) counts[block_x()] = sum;
}

// The sum over the threads before this one, and over all. `sums` holds one number for each thread.
LATHE_DEVICE long sum_before(long value, long* sums, long& total) {
  const int thread = thread_x();
  barrier();  // the last round's sums are read
  sums[thread] = value;
  for (int distance = 1; distance < kSelectThreads; distance *= 2) {
    barrier();
    const long more = thread >= distance ? sums[thread - distance] : 0;
    barrier();
    sums[thread] += more;
  }
  barrier();
  total = sums[kSelectThreads - 1];
  return sums[thread] - value;
}

// Each count becomes the sum of those before it; returns the sum of all. One block; `sums` as in sum_before().
LATHE_DEVICE long counts_to_begins(long length, long* counts, long* sums) {
  long sum = 0;
  for (long first = 0; first < length; first += kSelectThreads) {
    const long i = first + thread_x();
    long total;
    const long before = sum_before(i < length ? counts[i] : 0, sums, total);
    if (i < length) counts[i] = sum + before;
    sum += total;
  }
  return sum;
}

// Each block's beginning in the list, in place; the number of all at its end, or -1 where a position is `limit` or
// more: such a one does not exist. One block.
template <class Flags>
LATHE_DEVICE void select_add_up(const Flags& flags, long count, long limit, long num_blocks, long* counts, long* list) {
  dependency_wait();
  long* const sums = reinterpret_cast<long*>(dynamic_shared());
  long bad = 0, num_bad;
  for (long position = limit + thread_x(); position < count; position += kSelectThreads) bad += flags(position);
  sum_before(bad, sums, num_bad);
  const long sum = counts_to_begins(num_blocks, counts, sums);
  if (thread_x() == 0) list[count] = num_bad > 0 ? -1 : sum;
}

template <class Flags>
LATHE_DEVICE void select_list(const Flags& flags, long count, const long* counts, long* list) {
  dependency_wait();
  int* const warps = reinterpret_cast<int*>(dynamic_shared());
  long next = counts[block_x()];
  visit_block(flags, count, [&](long position, bool flag) {
    int total;
    const int rank = rank_in_block(flag, warps, total);
    if (flag) list[next + rank] = position;
    next += total;
  });
}

// Row d of the result: coordinate d of each position.
template <class Tensor, class Out>
LATHE_DEVICE void select_coordinates(const Tensor& tensor, const long* list, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long at[kCoordinates<Tensor>];
    unflatten(tensor, list[c[1]], at);
    for (int d = 0; d < Tensor::kRank; ++d)
      if (d == c[0]) element(out, c) = at[d];
  });
}

// Elements at the listed positions along an axis; kAxis -1: of the flat tensor.
template <int kAxis, class Tensor, class Out>
LATHE_DEVICE void select_elements(const Tensor& tensor, const long* list, const Out& out) {
  for_each_element(out, [&](const auto& c) {
    long at[kCoordinates<Tensor>];
    if constexpr (kAxis < 0) {
      unflatten(tensor, list[c[0]], at);
    } else {
      for (int d = 0; d < Tensor::kRank; ++d) at[d] = d == kAxis ? list[c[d]] : c[d];
    }
    element(out, c) = element(tensor, at);
  });
}
