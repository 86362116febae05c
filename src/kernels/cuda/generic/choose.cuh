// SPDX-License-Identifier: Apache-2.0
// One of two tensors, of which one dimension differs.
#pragma once

#include "generic/element.cuh"

// How long that dimension is, at the end of a list.
template <class Condition>
LATHE_DEVICE void choose_count(const Condition& condition, long yes, long no, long* end) {
  dependency_wait();
  if (thread_x() == 0) *end = condition.data[0] ? yes : no;
}

template <class Condition, class Yes, class No, class Out>
LATHE_DEVICE void choose(const Condition& condition, const Yes& yes, const No& no, const Out& out) {
  for_each_element(out, [&](const auto& c) { element(out, c) = condition.data[0] ? element(yes, c) : element(no, c); });
}
