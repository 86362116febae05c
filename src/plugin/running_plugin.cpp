// SPDX-License-Identifier: Apache-2.0
#include "plugin/running_plugin.h"

#include "plugin/field_bytes.h"
#include "plugin/registry.h"
#include "plugin/v2_plugin.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace lathe::plugin {
namespace {

constexpr ErrorCode kFailed = ErrorCode::execution_failed;

nv::IPluginV3OneRuntime* runtime_of(nv::IPluginV3& plugin) {
  return static_cast<nv::IPluginV3OneRuntime*>(plugin.getCapabilityInterface(nv::PluginCapabilityType::kRUNTIME));
}

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

std::vector<nv::PluginTensorDesc> described(const PluginTensors& tensors) {
  std::vector<nv::PluginTensorDesc> descs;
  for (const PluginTensor& tensor : tensors)
    descs.push_back(describe(tensor.dtype, {tensor.dims, static_cast<size_t>(tensor.rank)}, tensor.format));
  return descs;
}

class CreatedPlugin final : public RunningPlugin {
 public:
  static Result<std::unique_ptr<RunningPlugin>> make(nv::IPluginCreatorInterface& creator, bool is_v2, Who who,
                                                     const PluginRequest& request, ResourceContext context) {
    LATHE_ASSIGN(const Fields decoded, Fields::decode(request.fields));
    const nv::PluginFieldCollection collection = decoded.collection();
    std::unique_ptr<CreatedPlugin> made(new CreatedPlugin(std::move(who), request.tactic, context));
    const Who& plugin = made->who_;
    if (is_v2) {
      LATHE_ASSIGN(made->plugin_, V2Plugin::deserialize(static_cast<nv::IPluginCreator&>(creator), plugin, collection));
    } else {
      made->plugin_.reset(static_cast<nv::IPluginCreatorV3One&>(creator).createPlugin(plugin.layer.c_str(), &collection,
                                                                                      nv::TensorRTPhase::kRUNTIME));
    }
    if (!made->plugin_)
      return refuse(ErrorCode::plan_target, plugin, "createPlugin", "gives null for the fields that the plan holds");
    made->runtime_ = runtime_of(*made->plugin_);
    if (!made->runtime_)
      return refuse(ErrorCode::plan_target, plugin, "getCapabilityInterface", "gives null for kRUNTIME");
    return made;
  }

  Result<std::unique_ptr<AttachedPlugin>> attach() const override {
    const std::lock_guard lock(mutex_);
    return PluginClone::attach(*runtime_, who_, context_, tactic_);
  }

 private:
  CreatedPlugin(Who who, int32_t tactic, ResourceContext context)
      : who_(std::move(who)), tactic_(tactic), context_(context) {}
  Who who_;
  int32_t tactic_;
  ResourceContext context_;
  std::unique_ptr<nv::IPluginV3> plugin_;
  nv::IPluginV3OneRuntime* runtime_ = nullptr;
  mutable std::mutex mutex_;  // plugins are asked by one thread at a time
};

}  // namespace

Result<std::unique_ptr<AttachedPlugin>> PluginClone::attach(nv::IPluginV3OneRuntime& plugin, const Who& who,
                                                            ResourceContext context, int32_t tactic) {
  std::unique_ptr<PluginClone> attached(new PluginClone(who, context));
  attached->clone_.reset(plugin.attachToContext(&attached->context_));
  if (!attached->clone_)
    return refuse(kFailed, who, "attachToContext",
                  "gives null; a clone is wanted (of the V2 family: clone() does, or initialize() fails)");
  attached->runtime_ = runtime_of(*attached->clone_);
  if (!attached->runtime_)
    return refuse(kFailed, who, "getCapabilityInterface", "of an attached clone gives null for kRUNTIME");
  LATHE_TRY(expect_success(kFailed, who, "setTactic", attached->runtime_->setTactic(tactic)));
  return attached;
}

Result<> PluginClone::change_shapes(const PluginTensors& inputs, const PluginTensors& outputs) {
  inputs_ = described(inputs);
  outputs_ = described(outputs);
  return expect_success(kFailed, who_, "onShapeChange",
                        runtime_->onShapeChange(inputs_.data(), static_cast<int32_t>(inputs_.size()), outputs_.data(),
                                                static_cast<int32_t>(outputs_.size())));
}

Result<> PluginClone::enqueue(const void* const* in, void* const* out, void* workspace, void* stream) {
  return expect_success(kFailed, who_, "enqueue",
                        runtime_->enqueue(inputs_.data(), outputs_.data(), in, out, workspace, stream_of(stream)));
}

Result<std::unique_ptr<RunningPlugin>> RegistrySource::make(const PluginRequest& request) const {
  Who who{request.layer, request.name, request.version};
  nv::IPluginCreatorInterface* const creator =
      registry_.getCreator(request.name.c_str(), request.version.c_str(), request.space.c_str());
  if (!creator)
    return fail(ErrorCode::plan_target,
                "{}: the registry has no creator of that name and version in namespace '{}'; load the library that has "
                "it, by loadLibrary() of the runtime's plugin registry, before the engine",
                who.text(), request.space);
  const bool is_v2 = makes_v2_plugins(*creator);
  if (!is_v2 && !makes_v3_plugins(*creator)) {
    const char* const kind = creator->getInterfaceInfo().kind;
    return fail(ErrorCode::plan_target, "{}: the creator of that name is a '{}', not a '{}'", who.text(),
                kind ? kind : "", kCreatorKind);
  }
  const ResourceContext context(request.is_host, request.is_host ? nullptr : allocator_, recorder_);
  return CreatedPlugin::make(*creator, is_v2, std::move(who), request, context);
}

}  // namespace lathe::plugin
