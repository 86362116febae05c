// SPDX-License-Identifier: Apache-2.0
// New weights of an engine, computed and packed where kernels read them. base/packing_table.inc says what a table is.
#pragma once

#include "generic/rounded.cuh"

#include "base/packing_table.inc"

template <class F>
LATHE_DEVICE void for_packed_float(long type, F f) {
  if (type == kPackedF16)
    f(f16{});
  else if (type == kPackedBf16)
    f(bf16{});
  else if (type == kPackedF32)
    f(float{});
  else
    f(double{});
}

template <class T>
LATHE_DEVICE T* packed_elements(unsigned long address) {
  return reinterpret_cast<T*>(address);
}

LATHE_DEVICE double round_packed(long type, double value) {
  for_packed_float(type, [&](auto zero) { value = widen_to<double>(narrow<decltype(zero)>(value)); });
  return value;
}

// A product that is rounded by itself is in no fused one.
LATHE_DEVICE double join_packed(const PackedStep& step, double value, long element) {
  const double number = packed_elements<const double>(step.numbers)[element / step.inner % step.size];
  if (step.operation == kPackedAdd) return value + number;
  if (step.operation == kPackedSubtract) return value - number;
  return step.operation == kPackedMultiply ? product(value, number) : value / number;
}

LATHE_DEVICE void compute_packed(const PackedBox& box, const PackedStep* steps, long from, long to, int* found) {
  double value = 0;
  for_packed_float(box.from_type,
                   [&](auto zero) { value = widen_to<double>(packed_elements<const decltype(zero)>(box.from)[from]); });
  for (const PackedStep* step = steps + box.first_step; step < steps + box.first_step + box.steps; ++step) {
    const bool is_cast = step->operation == kPackedCast;
    const double before = is_cast ? value : join_packed(*step, value, from);
    value = round_packed(step->type, before);
    if (box.checks != 0 && is_cast && fabs(before) < infinite() && isinf(value)) *found = 1;
  }
  for_packed_float(box.to_type,
                   [&](auto zero) { packed_elements<decltype(zero)>(box.to)[to] = narrow<decltype(zero)>(value); });
}

template <class T>
LATHE_DEVICE void move_packed(const PackedBox& box, long from, long to) {
  packed_elements<T>(box.to)[to] = packed_elements<const T>(box.from)[from];
}

LATHE_DEVICE void move_packed(const PackedBox& box, long from, long to) {
  if (box.from_type == kPackedBits8)
    move_packed<uint8>(box, from, to);
  else if (box.from_type == kPackedBits16)
    move_packed<uint16>(box, from, to);
  else if (box.from_type == kPackedBits32)
    move_packed<uint32>(box, from, to);
  else
    move_packed<uint64>(box, from, to);
}

// The last box whose blocks begin at this one or before it.
LATHE_DEVICE const PackedBox& box_of_block(const PackedBox* boxes, long count) {
  long low = 0;
  for (long high = count; high - low > 1;) {
    const long middle = (low + high) / 2;
    (boxes[middle].first_block <= block_x() ? low : high) = middle;
  }
  return boxes[low];
}

LATHE_DEVICE void pack(const PackingHead* head, int* found) {
  dependency_wait();
  const auto* const boxes = reinterpret_cast<const PackedBox*>(head + 1);
  const auto* const steps = reinterpret_cast<const PackedStep*>(boxes + head->boxes);
  const PackedBox& box = box_of_block(boxes, head->boxes);
  const long first = (block_x() - box.first_block) * kPackedByBlock;
  for (long i = first + thread_x(); i < first + kPackedByBlock && i < box.elements; i += block_threads()) {
    long from = box.first_from, to = box.first_to;
    auto rest = static_cast<uint32>(i);  // a box has fewer elements than that
    for (long d = box.dims; d-- > 0;) {
      const PackedAxis axis = box.axes[d];
      const auto extent = static_cast<uint32>(axis.extent);
      const long at = rest % extent;
      rest /= extent;
      from += at * axis.from_stride;
      to += at * axis.to_stride;
    }
    if (box.steps > 0)
      compute_packed(box, steps, from, to, found);
    else
      move_packed(box, from, to);
  }
}
