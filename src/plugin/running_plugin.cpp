// SPDX-License-Identifier: Apache-2.0
#include "plugin/running_plugin.h"

#include <cstring>

#include "plugin/field_bytes.h"

namespace lathe::plugin {
namespace {

constexpr ErrorCode kFailed = ErrorCode::execution_failed;

nv::IPluginV3OneRuntime* runtime_of(nv::IPluginV3& plugin) {
  return static_cast<nv::IPluginV3OneRuntime*>(plugin.getCapabilityInterface(nv::PluginCapabilityType::kRUNTIME));
}

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

Result<std::unique_ptr<AttachedPlugin>> AttachedPlugin::attach(nv::IPluginV3OneRuntime& plugin, const Who& who,
                                                               ResourceContext context, int32_t tactic) {
  std::unique_ptr<AttachedPlugin> attached(new AttachedPlugin(who, context));
  attached->clone_.reset(plugin.attachToContext(&attached->context_));
  if (!attached->clone_) return refuse(kFailed, who, "attachToContext", "gives null; a clone is wanted");
  attached->runtime_ = runtime_of(*attached->clone_);
  if (!attached->runtime_)
    return refuse(kFailed, who, "getCapabilityInterface", "of an attached clone gives null for kRUNTIME");
  LATHE_TRY(expect_success(kFailed, who, "setTactic", attached->runtime_->setTactic(tactic)));
  return attached;
}

Result<> AttachedPlugin::change_shapes(const Descs& inputs, const Descs& outputs) {
  return expect_success(kFailed, who_, "onShapeChange",
                        runtime_->onShapeChange(inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                                                static_cast<int32_t>(outputs.size())));
}

Result<> AttachedPlugin::enqueue(const Descs& inputs, const Descs& outputs, const void* const* in, void* const* out,
                                 void* workspace, void* stream) {
  return expect_success(kFailed, who_, "enqueue",
                        runtime_->enqueue(inputs.data(), outputs.data(), in, out, workspace, stream_of(stream)));
}

Result<std::unique_ptr<RunningPlugin>> RunningPlugin::make(nv::IPluginRegistry* registry, Who who,
                                                           const std::string& space, std::span<const std::byte> fields,
                                                           int32_t tactic, ResourceContext context) {
  nv::IPluginCreatorInterface* const creator =
      registry ? registry->getCreator(who.name.c_str(), who.version.c_str(), space.c_str()) : nullptr;
  if (!creator)
    return fail(ErrorCode::plan_target,
                "{}: the registry has no creator of that name and version in namespace '{}'; load the library that has "
                "it, by loadLibrary() of the runtime's plugin registry, before the engine",
                who.text(), space);
  const char* const kind = creator->getInterfaceInfo().kind;
  if (!kind || std::strcmp(kind, "PLUGIN CREATOR_V3ONE") != 0)
    return fail(ErrorCode::plan_target, "{}: the creator of that name is a '{}', not a 'PLUGIN CREATOR_V3ONE'",
                who.text(), kind ? kind : "");
  LATHE_ASSIGN(const Fields decoded, Fields::decode(fields));
  const nv::PluginFieldCollection collection = decoded.collection();
  std::unique_ptr<RunningPlugin> made(new RunningPlugin(std::move(who), tactic, context));
  const Who& plugin = made->who_;
  made->plugin_.reset(static_cast<nv::IPluginCreatorV3One*>(creator)->createPlugin(plugin.layer.c_str(), &collection,
                                                                                   nv::TensorRTPhase::kRUNTIME));
  if (!made->plugin_)
    return refuse(ErrorCode::plan_target, plugin, "createPlugin", "gives null for the fields that the plan holds");
  made->runtime_ = runtime_of(*made->plugin_);
  if (!made->runtime_)
    return refuse(ErrorCode::plan_target, plugin, "getCapabilityInterface", "gives null for kRUNTIME");
  return made;
}

Result<std::unique_ptr<AttachedPlugin>> RunningPlugin::attach() const {
  const std::lock_guard lock(mutex_);
  return AttachedPlugin::attach(*runtime_, who_, context_, tactic_);
}

}  // namespace lathe::plugin
