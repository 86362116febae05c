// SPDX-License-Identifier: Apache-2.0
#include "ops/packing.h"

#include <algorithm>
#include <cstring>

namespace lathe {
namespace {

constexpr size_t kMostDims = 8, kMostBoxes = 256;

// The first and last element that a box touches; nullopt on overflow.
std::optional<std::pair<int64_t, int64_t>> reach(int64_t start, const Dims& extents, const Dims& strides) {
  int64_t low = start, high = start;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t span = 0;
    if (__builtin_mul_overflow(extents[d] - 1, strides[d], &span)) return std::nullopt;
    if (__builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high)) return std::nullopt;
  }
  return std::pair(low, high);
}

bool lies_within(int64_t start, const Dims& extents, const Dims& strides, int64_t volume) {
  const auto range = reach(start, extents, strides);
  return range && range->first >= 0 && range->second < volume;
}

template <size_t kSize>
void copy_elements(const std::byte* from, std::byte* to, int64_t count, int64_t from_stride, int64_t to_stride) {
  for (int64_t i = 0; i < count; ++i, from += from_stride * int64_t{kSize}, to += to_stride * int64_t{kSize})
    std::memcpy(to, from, kSize);
}

void copy_run(const std::byte* from, std::byte* to, int64_t count, int64_t from_stride, int64_t to_stride,
              size_t size) {
  if (from_stride == 1 && to_stride == 1) return void(std::memcpy(to, from, static_cast<size_t>(count) * size));
  if (size == 4) return copy_elements<4>(from, to, count, from_stride, to_stride);
  if (size == 2) return copy_elements<2>(from, to, count, from_stride, to_stride);
  if (size == 8) return copy_elements<8>(from, to, count, from_stride, to_stride);
  copy_elements<1>(from, to, count, from_stride, to_stride);
}

void copy_box(const PackingBox& box, const std::byte* from, std::byte* to, size_t size) {
  Dims index(box.extents.size());
  int64_t at_from = box.from, at_to = box.to;
  const size_t last = box.extents.size() - 1;
  for (;;) {
    copy_run(from + at_from * static_cast<int64_t>(size), to + at_to * static_cast<int64_t>(size), box.extents[last],
             box.from_strides[last], box.to_strides[last], size);
    size_t d = last;
    while (d > 0) {
      --d;
      at_from += box.from_strides[d];
      at_to += box.to_strides[d];
      if (++index[d] < box.extents[d]) break;
      at_from -= box.from_strides[d] * box.extents[d];
      at_to -= box.to_strides[d] * box.extents[d];
      index[d] = 0;
      if (d == 0) return;
    }
    if (last == 0) return;
  }
}

}  // namespace

Result<Tensor> Packing::apply(const Tensor& source) const {
  if (is_packed(source.dtype()))
    return fail(ErrorCode::dtype_unsupported, "elements of type {} cannot be packed one by one",
                name_of(source.dtype()));
  LATHE_ASSIGN(Tensor result, Tensor::allocate(source.dtype(), dims));
  for (const PackingBox& box : boxes)
    if (box.extents.empty() || !lies_within(box.from, box.extents, box.from_strides, source.volume()) ||
        !lies_within(box.to, box.extents, box.to_strides, result.volume()))
      return fail(ErrorCode::plan_malformed, "weights of {} elements do not fit the order that they are packed in",
                  source.volume());
  if (result.bytes() > 0) std::memset(result.mutable_data(), 0, result.bytes());
  for (const PackingBox& box : boxes)
    copy_box(box, static_cast<const std::byte*>(source.data()), static_cast<std::byte*>(result.mutable_data()),
             size_of(source.dtype()));
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
