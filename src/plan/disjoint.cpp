// SPDX-License-Identifier: Apache-2.0
#include "plan/disjoint.h"

#include <algorithm>
#include <utility>

namespace lathe::plan {
namespace {

Shape strides_of(const TensorDesc& tensor) {
  if (!tensor.strides.empty()) return tensor.strides;
  Shape strides(tensor.dims.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * tensor.dims[i];
  return strides;
}

// Dimensions from the inside to the outside, as far as sizes that are not small tell: the proof fails if they mislead.
std::vector<size_t> inside_out(const Shape& strides, std::span<const Range> ranges) {
  constexpr int64_t kNotSmall = 1000;
  std::vector<int64_t> sizes;
  for (const Range& range : ranges) sizes.push_back(std::clamp(kNotSmall, range.min, std::max(range.min, range.max)));
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < strides.size(); ++i) order.emplace_back(strides[i].evaluate(sizes).value_or(INT64_MAX), i);
  std::sort(order.begin(), order.end());
  std::vector<size_t> dims;
  for (const auto& [stride, i] : order) dims.push_back(i);
  return dims;
}

// Whether `b` begins behind the last index of `a` along dimension `k`, and the box around both has a place of its own
// for each element: from the innermost dimension on, each stride passes over all that the dimensions inside it cover.
bool lies_behind(const TensorDesc& a, const TensorDesc& b, const Shape& strides, size_t k,
                 std::span<const Range> ranges) {
  const auto at_least_0 = [&](const Expr& number) { return number.range(ranges).min >= 0; };
  const Expr distance = b.offset - a.offset;
  if (!at_least_0(distance - a.dims[k] * strides[k])) return false;
  Expr covered = 1;
  for (const size_t i : inside_out(strides, ranges)) {
    if (i != k && !(a.dims[i] == b.dims[i])) return false;
    if (i != k && a.dims[i] == Expr(1)) continue;
    if (!at_least_0(strides[i] - covered)) return false;
    covered += i == k ? distance + (b.dims[k] - 1) * strides[k] : (a.dims[i] - 1) * strides[i];
  }
  return true;
}

}  // namespace

bool are_disjoint(const TensorDesc& a, const TensorDesc& b, std::span<const Range> ranges) {
  const Shape strides = strides_of(a);
  if (strides != strides_of(b)) return false;
  for (size_t k = 0; k < strides.size(); ++k)
    if (lies_behind(a, b, strides, k, ranges) || lies_behind(b, a, strides, k, ranges)) return true;
  return false;
}

}  // namespace lathe::plan
