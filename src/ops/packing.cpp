// SPDX-License-Identifier: Apache-2.0
#include "ops/packing.h"

#include <algorithm>
#include <cstring>

#include "ops/pack_bytes.h"

namespace lathe {
namespace {

constexpr size_t kMostDims = 8, kMostBoxes = 256;

}  // namespace

Result<Tensor> Packing::apply(const Tensor& source) const {
  LATHE_TRY(check_packing(*this, source));
  LATHE_ASSIGN(Tensor result, Tensor::allocate(source.dtype(), dims));
  if (result.bytes() > 0) std::memset(result.mutable_data(), 0, result.bytes());
  pack_bytes(*this, size_of(source.dtype()), static_cast<const std::byte*>(source.data()),
             static_cast<std::byte*>(result.mutable_data()));
  return result;
}

Packing Packing::repeated(int64_t count, int64_t from_stride, int64_t to_stride) const {
  Packing result = *this;
  for (PackingBox& box : result.boxes) {
    box.extents.insert(box.extents.begin(), count);
    box.from_strides.insert(box.from_strides.begin(), from_stride);
    box.to_strides.insert(box.to_strides.begin(), to_stride);
  }
  return result;
}

std::vector<int64_t> to_numbers(const Packing& packing) {
  std::vector<int64_t> numbers = {static_cast<int64_t>(packing.dims.size())};
  numbers.insert(numbers.end(), packing.dims.begin(), packing.dims.end());
  for (const PackingBox& box : packing.boxes) {
    numbers.insert(numbers.end(), {static_cast<int64_t>(box.extents.size()), box.from, box.to});
    for (const Dims* list : {&box.extents, &box.from_strides, &box.to_strides})
      numbers.insert(numbers.end(), list->begin(), list->end());
  }
  return numbers;
}

Result<Packing> packing_from(std::span<const int64_t> numbers) {
  const auto malformed = [] {
    return fail(ErrorCode::plan_malformed, "the order that weights are packed in is not well formed");
  };
  const auto take = [&](size_t count) {
    Dims list(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(count));
    numbers = numbers.subspan(count);
    return list;
  };
  const auto is_count = [](int64_t count) { return count >= 1 && count <= static_cast<int64_t>(kMostDims); };
  Packing packing;
  if (numbers.empty() || !is_count(numbers[0]) || numbers.size() < 1 + static_cast<size_t>(numbers[0]))
    return malformed();
  const auto rank = static_cast<size_t>(take(1)[0]);
  packing.dims = take(rank);
  if (!checked_volume(packing.dims)) return malformed();
  while (!numbers.empty()) {
    if (!is_count(numbers[0]) || packing.boxes.size() == kMostBoxes) return malformed();
    const auto count = static_cast<size_t>(numbers[0]);
    if (numbers.size() < 3 + 3 * count) return malformed();
    const Dims start = take(3);
    PackingBox box{start[1], start[2], take(count), take(count), take(count)};
    if (std::any_of(box.extents.begin(), box.extents.end(), [](int64_t extent) { return extent < 1; }))
      return malformed();
    packing.boxes.push_back(std::move(box));
  }
  return packing;
}

}  // namespace lathe
