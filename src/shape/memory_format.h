// SPDX-License-Identifier: Apache-2.0
// Formats of inputs, outputs and operands of plugins: how a tensor of the network, whose dimensions are in the
// network's order, lies in memory that the application sees.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/divide.h"
#include "base/result.h"
#include "shape/expr.h"

namespace lathe {

// Channels are the dimension in front of the last two, or three. In memory they come last, or in groups of `vector`:
// the groups where the channels were, and what is in a group last. Groups are filled up with zeros.
struct MemoryLayout {
  int32_t number;    // of the public interface's TensorFormat, whose 0 is row-major
  const char* name;  // in plans: part of their format
  size_t spatial;    // dimensions behind the channels
  int64_t vector;    // 1 = channels lie one by one
  bool channels_last;
  const char* words;  // TensorRT's description, which the type's name ends
};

// Null where there is no such: of row-major memory, and of formats that only a DLA has.
const MemoryLayout* find_layout(int32_t number);
std::span<const MemoryLayout> memory_layouts();

// Of one tensor.
class MemoryFormat {
 public:
  // `rank` and `channels` are the tensor's; -1 channels are not known while building.
  static Result<MemoryFormat> make(const MemoryLayout& layout, size_t rank, int64_t channels);
  static Result<MemoryFormat> parse(std::string_view text);  // as to_text() gives it
  std::string to_text() const;

  const MemoryLayout& layout() const { return *layout_; }
  size_t rank() const { return rank_; }
  size_t rank_in_memory() const { return rank_ + (layout_->channels_last ? 0 : 1); }
  size_t channel_axis() const { return rank_ - 1 - layout_->spatial; }
  int64_t channels() const { return channels_; }
  int64_t padded_channels() const { return channels_ < 0 ? -1 : round_up(channels_, layout_->vector); }

  // Dimensions in the network's order, and those in memory; of a Dims or a Shape.
  template <class List>
  List in_memory(const List& dims) const {
    List result(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(channel_axis()));
    const auto padded = channels_ < 0 ? dims[channel_axis()] : typename List::value_type(padded_channels());
    if (!layout_->channels_last) result.push_back(typename List::value_type(padded_channels() / layout_->vector));
    result.insert(result.end(), dims.begin() + static_cast<ptrdiff_t>(channel_axis()) + 1, dims.end());
    result.push_back(layout_->channels_last ? padded : typename List::value_type(layout_->vector));
    return result;
  }
  // Of as many as rank_in_memory().
  template <class List>
  List in_network(const List& dims) const {
    const auto axis = static_cast<ptrdiff_t>(channel_axis()), spatial = static_cast<ptrdiff_t>(layout_->spatial);
    const ptrdiff_t behind = axis + (layout_->channels_last ? 0 : 1);
    List result(dims.begin(), dims.begin() + axis);
    result.push_back(channels_ < 0 ? dims.back() : typename List::value_type(channels_));
    result.insert(result.end(), dims.begin() + behind, dims.begin() + behind + spatial);
    return result;
  }
  // Fails when the channels are others than when the engine was built.
  Result<Dims> in_memory_checked(const Dims& dims) const;
  // Of each dimension, in the network's order: in elements, or in groups where channels lie in such.
  Dims strides(const Dims& dims) const;

 private:
  MemoryFormat(const MemoryLayout& layout, size_t rank, int64_t channels)
      : layout_(&layout), rank_(rank), channels_(channels) {}

  const MemoryLayout* layout_;
  size_t rank_;
  int64_t channels_;
};

}  // namespace lathe
