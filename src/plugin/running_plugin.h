// SPDX-License-Identifier: Apache-2.0
// The running half of a plugin.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

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

// A clone that belongs to one execution context. One thread at a time.
class AttachedPlugin {
 public:
  // The clone that attachToContext() gives, with its tactic set.
  static Result<std::unique_ptr<AttachedPlugin>> attach(nv::IPluginV3OneRuntime& plugin, const Who& who,
                                                        ResourceContext context, int32_t tactic);

  using Descs = std::vector<nv::PluginTensorDesc>;
  Result<> change_shapes(const Descs& inputs, const Descs& outputs);
  Result<> enqueue(const Descs& inputs, const Descs& outputs, const void* const* in, void* const* out, void* workspace,
                   void* stream);

 private:
  explicit AttachedPlugin(Who who, ResourceContext context) : who_(std::move(who)), context_(context) {}
  Who who_;
  ResourceContext context_;  // which the clone may refer to: it goes after it
  std::unique_ptr<nv::IPluginV3> clone_;
  nv::IPluginV3OneRuntime* runtime_ = nullptr;
};

// What an engine holds of a plugin: it hands out clones. Thread-safe.
class RunningPlugin {
 public:
  // Made by the creator of that name, version and namespace, from the fields that encode_fields() has written.
  static Result<std::unique_ptr<RunningPlugin>> make(nv::IPluginRegistry* registry, Who who, const std::string& space,
                                                     std::span<const std::byte> fields, int32_t tactic,
                                                     ResourceContext context);
  Result<std::unique_ptr<AttachedPlugin>> attach() const;

 private:
  RunningPlugin(Who who, int32_t tactic, ResourceContext context)
      : who_(std::move(who)), tactic_(tactic), context_(context) {}
  Who who_;
  int32_t tactic_;
  ResourceContext context_;
  std::unique_ptr<nv::IPluginV3> plugin_;
  nv::IPluginV3OneRuntime* runtime_ = nullptr;
  mutable std::mutex mutex_;  // plugins are asked by one thread at a time
};

}  // namespace lathe::plugin
