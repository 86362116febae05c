// SPDX-License-Identifier: Apache-2.0
// A plugin of the application's as the kernel of a step.
#pragma once

#include "ops/plugin.h"
#include "runtime/engine.h"

namespace lathe {

// Holds a clone of the plugin that belongs to one context, and what it was told last: unlike other kernels it is used
// by one thread at a time, as that context. The engine outlives it.
class PluginKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<PluginKernel>> make(const Engine& engine, size_t step);

  Result<size_t> prepare(const Operands& operands, int threads) const override;
  Result<> enqueue(const Operands& operands, std::byte* workspace, Queue& queue) const override;

 private:
  struct State {
    PluginTensors inputs, outputs;
    std::vector<const void*> in;
    std::vector<void*> out;
    bool told = false;
  };

  PluginKernel(const Engine& engine, const PluginAttrs& attrs) : device_(engine.device()), attrs_(attrs) {}

  Device& device_;
  const PluginAttrs& attrs_;
  std::vector<std::vector<bool>> found_;  // dims of outputs that the plugin finds out
  PluginFormats formats_;
  std::unique_ptr<AttachedPlugin> plugin_;
  mutable State state_;
};

}  // namespace lathe
