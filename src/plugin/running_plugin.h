// SPDX-License-Identifier: Apache-2.0
// The running half of a plugin.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/plugin.h"
#include "plugin/callback.h"
#include "plugin/types.h"

namespace lathe::plugin {

// What plugins of an engine are told of where they run. Not owned; null where there is none.
class ResourceContext final : public nv::IPluginResourceContext {
 public:
  ResourceContext(bool is_host, nv::IGpuAllocator* allocator, nv::IErrorRecorder* recorder)
      : is_host_(is_host), allocator_(allocator), recorder_(recorder) {}
  ~ResourceContext() noexcept override = default;

  nv::IGpuAllocator* getGpuAllocator() const noexcept override { return allocator_; }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return recorder_; }
  bool is_host() const { return is_host_; }

 private:
  bool is_host_;
  nv::IGpuAllocator* allocator_;
  nv::IErrorRecorder* recorder_;
};

class PluginClone final : public AttachedPlugin {
 public:
  // That which attachToContext() gives, with its tactic set.
  static Result<std::unique_ptr<AttachedPlugin>> attach(nv::IPluginV3OneRuntime& plugin, const Who& who,
                                                        ResourceContext context, int32_t tactic);

  Result<> change_shapes(const PluginTensors& inputs, const PluginTensors& outputs) override;
  Result<> enqueue(const void* const* in, void* const* out, void* workspace, void* stream) override;

 private:
  explicit PluginClone(Who who, ResourceContext context) : who_(std::move(who)), context_(context) {}
  Who who_;
  ResourceContext context_;  // which the clone may refer to: it goes after it
  std::unique_ptr<nv::IPluginV3> clone_;
  nv::IPluginV3OneRuntime* runtime_ = nullptr;
  std::vector<nv::PluginTensorDesc> inputs_, outputs_;  // as told last
};

// Plugins that creators of a registry make from the fields that encode_fields() has written.
class RegistrySource final : public PluginSource {
 public:
  // Not owned: the registry outlives this, the others what is made. Of a host's plugins the allocator is not told.
  RegistrySource(nv::IPluginRegistry& registry, nv::IGpuAllocator* allocator, nv::IErrorRecorder* recorder)
      : registry_(registry), allocator_(allocator), recorder_(recorder) {}
  Result<std::unique_ptr<RunningPlugin>> make(const PluginRequest& request) const override;

 private:
  nv::IPluginRegistry& registry_;
  nv::IGpuAllocator* allocator_;
  nv::IErrorRecorder* recorder_;
};

}  // namespace lathe::plugin
