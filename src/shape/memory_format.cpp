// SPDX-License-Identifier: Apache-2.0
#include "shape/memory_format.h"

#include <algorithm>
#include <charconv>

namespace lathe {
namespace {

constexpr MemoryLayout kLayouts[] = {
    {1, "CHW2", 2, 2, false, "Two wide channel vectorized row major"},
    {3, "CHW4", 2, 4, false, "Four wide channel vectorized row major"},
    {4, "CHW16", 2, 16, false, "Sixteen wide channel vectorized row major"},
    {5, "CHW32", 2, 32, false, "Thirty-two wide channel vectorized row major"},
    {7, "CDHW32", 3, 32, false, "Thirty-two wide channel vectorized row major with 3 spatial dimensions,"},
    {8, "HWC", 2, 1, true, "Channel major"},
    {2, "HWC8", 2, 8, true, "Channel major, where channels are a multiple of 8,"},
    {11, "HWC16", 2, 16, true, "Channel major, where channels are a multiple of 16,"},
    {12, "DHWC", 3, 1, true, "Channel major with 3 spatial dimensions"},
    {6, "DHWC8", 3, 8, true, "Channel major with 3 spatial dimensions, where channels are a multiple of 8,"},
};

template <class T>
bool read(std::string_view& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

}  // namespace

const MemoryLayout* find_layout(int32_t number) {
  const auto it = std::ranges::find(kLayouts, number, &MemoryLayout::number);
  return it == std::end(kLayouts) ? nullptr : it;
}

std::span<const MemoryLayout> memory_layouts() { return kLayouts; }

Result<MemoryFormat> MemoryFormat::make(const MemoryLayout& layout, size_t rank, int64_t channels) {
  if (rank < layout.spatial + 1)
    return fail(ErrorCode::config_invalid, "format {} is of tensors of at least {} dimensions, and this one has {}",
                layout.name, layout.spatial + 1, rank);
  if (layout.vector > 1 && channels < 1)
    return fail(ErrorCode::config_invalid,
                "format {} is of tensors whose number of channels is fixed: fix dimension {}", layout.name,
                rank - 1 - layout.spatial);
  return MemoryFormat(layout, rank, layout.vector > 1 ? channels : -1);
}

std::string MemoryFormat::to_text() const { return fmt::format("{} {} {}", layout_->name, rank_, channels_); }

Result<MemoryFormat> MemoryFormat::parse(std::string_view text) {
  const std::string_view whole = text;
  const size_t space = std::min(text.find(' '), text.size());
  const auto layout = std::ranges::find(kLayouts, text.substr(0, space), &MemoryLayout::name);
  text.remove_prefix(std::min(space + 1, text.size()));
  size_t rank = 0;
  int64_t channels = 0;
  if (layout == std::end(kLayouts) || !read(text, rank) || !read(text, channels) || !text.empty() || rank > 64 ||
      channels > INT32_MAX)
    return fail(ErrorCode::plan_malformed, "'{}' is no format of a tensor", whole);
  Result<MemoryFormat> format = make(*layout, rank, channels);
  if (!format) return fail(ErrorCode::plan_malformed, "'{}' is no format of a tensor", whole);
  return format;
}

Result<Dims> MemoryFormat::in_memory_checked(const Dims& dims) const {
  if (dims.size() != rank_)
    return fail(ErrorCode::shape_mismatch, "{} dimensions are given, and it has {}", dims.size(), rank_);
  if (channels_ >= 0 && dims[channel_axis()] != channels_)
    return fail(ErrorCode::shape_mismatch, "it has {} channels in format {}, and {} are given", channels_,
                layout_->name, dims[channel_axis()]);
  return in_memory(dims);
}

Dims MemoryFormat::strides(const Dims& dims) const {
  Dims groups = dims;  // of channels, where they lie in such
  if (channels_ >= 0) groups[channel_axis()] = padded_channels() / layout_->vector;
  Dims strides(rank_);
  int64_t stride = 1;
  const auto place = [&](size_t d) {
    strides[d] = stride;
    stride *= groups[d];
  };
  if (layout_->channels_last) place(channel_axis());
  for (size_t d = rank_; d-- > 0;)
    if (!layout_->channels_last || d != channel_axis()) place(d);
  return strides;
}

}  // namespace lathe
