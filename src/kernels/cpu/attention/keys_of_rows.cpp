// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/attention/keys_of_rows.h"

#include <algorithm>
#include <utility>

namespace lathe::cpu::attention {
namespace {

constexpr KeyRange kUnknown{0, -1};

}  // namespace

KeyRange KeysOfRows::at(const Place& place) {
  if (!mask_ || broadcast_stride_at(*mask_, 1, 4) != 0) return find(place);
  if (std::exchange(batch_, place.batch) != place.batch) std::fill_n(of_queries_, sizes_.queries, kUnknown);
  KeyRange& keys = of_queries_[place.query];
  if (keys.end == kUnknown.end) keys = find(place);
  return keys;
}

KeyRange KeysOfRows::find(const Place& place) const {
  KeyRange keys{0, sizes_.keys};
  if (params_.causal) keys.end = std::clamp<int64_t>(place.query + sizes_.keys - sizes_.queries + 1, 0, sizes_.keys);
  if (!mask_ || broadcast_stride_at(*mask_, 3, 4) != 1) return keys;
  const int64_t row = broadcast_offset_in(*mask_, place);
  if (mask_->dtype == DType::f32) return shown_keys(mask_->as<float>() + row, keys);
  return params_.hidden <= kLow ? shown_keys(mask_->as<uint8_t>() + row, keys) : keys;
}

}  // namespace lathe::cpu::attention
