// SPDX-License-Identifier: Apache-2.0
// Plugins of the application's, as engines see them. Classes of the public interface have other tables in each
// generation, and what runs engines is compiled once, for none of them: src/plugin implements these classes for each.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/tensor_arg.h"

namespace lathe {

// A tensor as plugins are told of it; a size of -1 is not known.
struct PluginTensor {
  DType dtype = DType::f32;
  int32_t format = 0;  // as MemoryLayout::number: how it lies in memory, whatever the order of its dimensions
  int rank = 0;
  int64_t dims[kMaxRank] = {};

  bool operator==(const PluginTensor&) const = default;
};
using PluginTensors = std::vector<PluginTensor>;

// A clone that belongs to one execution context. One thread at a time.
class AttachedPlugin {
 public:
  virtual ~AttachedPlugin() = default;
  // Before the first enqueue(), and whenever sizes are others.
  virtual Result<> change_shapes(const PluginTensors& inputs, const PluginTensors& outputs) = 0;
  // On tensors of the shapes that were told last. `stream` is the device's own; null on a CPU.
  virtual Result<> enqueue(const void* const* in, void* const* out, void* workspace, void* stream) = 0;
};

// What an engine holds of a plugin: it hands out clones. Thread-safe.
class RunningPlugin {
 public:
  virtual ~RunningPlugin() = default;
  virtual Result<std::unique_ptr<AttachedPlugin>> attach() const = 0;
};

// What a plan says of a plugin: whose creator to look for, and what to give it.
struct PluginRequest {
  std::string layer, name, version, space;
  std::span<const std::byte> fields;
  int32_t tactic = 0;
  bool is_host = false;  // pointers are the host's
};

class PluginSource {
 public:
  virtual ~PluginSource() = default;
  virtual Result<std::unique_ptr<RunningPlugin>> make(const PluginRequest& request) const = 0;
};

}  // namespace lathe
