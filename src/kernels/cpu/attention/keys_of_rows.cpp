// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/keys_of_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace lathe::cpu::attention {
namespace {

constexpr RowKeys kUnknown{{0, -1}};

// Whether a row of the mask, from its first element on, hides all keys.
bool sees_none(const TensorArg& mask, int64_t row, int64_t stride, KeyRange keys) {
  for (int64_t at = row + keys.first * stride; keys.count() > 0; ++keys.first, at += stride)
    if (mask.dtype == DType::f32 ? mask.as<float>()[at] != -HUGE_VALF : mask.as<uint8_t>()[at] != 0) return false;
  return true;
}

}  // namespace

float weigh_alike(const Sizes& sizes, float* weights, int64_t steps) {
  constexpr uint32_t kOne = 0x3f80, kPair = kOne << 16 | kOne;  // as bf16
  const int64_t count = sizes.bf16 ? sizes.keys / 2 : sizes.keys;
  std::fill_n(weights, steps, 0.0f);
  std::fill_n(weights, count, sizes.bf16 ? std::bit_cast<float>(kPair) : 1.0f);
  if (sizes.bf16 && sizes.keys % 2 != 0) weights[count] = std::bit_cast<float>(kOne);
  return 1 / static_cast<float>(sizes.keys);
}

void KeysOfRows::find_at(Place& place) {
  if (!mask_ || broadcast_stride_at(*mask_, 1, 4) != 0) return find(place, place.keys);
  if (std::exchange(batch_, place.batch) != place.batch) std::fill_n(of_queries_, sizes_.queries, kUnknown);
  RowKeys& keys = of_queries_[place.query];
  if (keys.end == kUnknown.end) find(place, keys);
  place.keys = keys;
}

void KeysOfRows::find(const Place& place, RowKeys& found) const {
  const KeyRange keys = params_.seen().of(place.query, sizes_.queries, sizes_.keys);
  const int64_t stride = mask_ ? broadcast_stride_at(*mask_, 3, 4) : 0,
                row = mask_ ? broadcast_offset_in(*mask_, place) : 0;
  if (params_.mean_for_none && sizes_.keys > 0 && (mask_ ? sees_none(*mask_, row, stride, keys) : keys.count() == 0)) {
    found = {{0, sizes_.keys}, true};
    return;
  }
  KeyRange shown = keys;
  if (mask_ && stride == 1 && mask_->dtype == DType::f32)
    shown = shown_keys(mask_->as<float>() + row, keys);
  else if (mask_ && stride == 1 && params_.hidden <= kLow)
    shown = shown_keys(mask_->as<uint8_t>() + row, keys);
  found = {shown};
}

}  // namespace lathe::cpu::attention
