// SPDX-License-Identifier: Apache-2.0
// The building half of a plugin: every question is asked here, and no answer is believed that cannot be.
#pragma once

#include <vector>

#include "plugin/callback.h"
#include "plugin/expr_builder.h"
#include "plugin/types.h"

namespace lathe::plugin {

// Refers to the plugin, and to its capabilities. One thread at a time.
class BuildingPlugin {
 public:
  // Refuses plugins without one of the three capabilities, or without a name.
  static Result<BuildingPlugin> of(nv::IPluginV3& plugin, std::string layer);

  const Who& who() const { return who_; }
  const std::string& space() const { return space_; }
  nv::IPluginV3OneRuntime& runtime() const { return *runtime_; }

  Result<size_t> num_outputs() const;
  Result<std::vector<DType>> output_types(const std::vector<DType>& inputs) const;
  struct Shapes {
    std::vector<Shape> outputs;
    std::vector<DeclaredSize> sizes;
  };
  // Dims of inputs and contents of shape inputs as expressions; the sizes that the plugin declares are symbols from
  // `first_size` on.
  Result<Shapes> output_shapes(const std::vector<Shape>& inputs, const std::vector<Shape>& shape_inputs,
                               SymbolId first_size) const;

  // Inputs and outputs under one profile.
  struct Tensors {
    std::vector<nv::DynamicPluginTensorDesc> inputs, outputs;
  };
  // Sets the format of each tensor to one of those that are offered for it, inputs before outputs, earlier ones rather
  // than later ones: the first combination that the plugin takes.
  Result<> choose_formats(Tensors& tensors, const std::vector<std::vector<int32_t>>& offered) const;
  Result<> configure(const Tensors& tensors) const;
  Result<size_t> workspace(const Tensors& tensors) const;
  Result<std::vector<int32_t>> tactics() const;  // at least one; 0 alone where the plugin has none of its own
  // For each output the input in whose memory it lies, or -1; of inputs as many as told.
  Result<std::vector<int64_t>> aliases(size_t inputs, size_t outputs) const;
  Result<std::vector<std::byte>> fields() const;
  std::string metadata() const;
  std::string timing_id() const;  // of getTimingCacheID(); empty = times are not to be kept

 private:
  BuildingPlugin() = default;
  Who who_;
  std::string space_;
  nv::IPluginV3OneBuild* build_ = nullptr;
  nv::IPluginV3OneRuntime* runtime_ = nullptr;
};

}  // namespace lathe::plugin
