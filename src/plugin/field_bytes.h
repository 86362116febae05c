// SPDX-License-Identifier: Apache-2.0
// Fields of a plugin as bytes: their number, then for each the length of its name, its name, type, number of elements,
// and the elements. Numbers are 32 bits, the lowest first.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "NvInferRuntime.h"
#include "base/result.h"

namespace lathe::plugin {

// Refuses what is no collection: null where there should be memory, unknown types, negative lengths.
Result<std::vector<std::byte>> encode_fields(const nvinfer1::PluginFieldCollection& fields);

// Fields that own what they refer to; elements are aligned for every type.
class Fields {
 public:
  static Result<Fields> decode(std::span<const std::byte> bytes);
  nvinfer1::PluginFieldCollection collection() const { return {static_cast<int32_t>(fields_.size()), fields_.data()}; }

 private:
  std::deque<std::string> names_;  // which stay where they are
  std::vector<std::unique_ptr<std::max_align_t[]>> elements_;
  std::vector<nvinfer1::PluginField> fields_;
};

}  // namespace lathe::plugin
