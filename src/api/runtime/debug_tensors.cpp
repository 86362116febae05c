// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/debug_tensors.h"

#include <algorithm>

#include "api/callback.h"
#include "api/plan_keys.h"

namespace lathe::api {

DebugTensors::DebugTensors(const EngineCore& engine, Context& context) : engine_(engine), context_(context) {
  const auto& bindings = engine.plan().bindings;
  for (size_t i = 0; i < bindings.size(); ++i) {
    if (!find_key(engine.plan(), kDebugTensorKey, bindings[i].name)) continue;
    Entry& entry = tensors_[bindings[i].name];
    entry.binding = i;
    if (i < engine.num_io()) continue;
    (void)context.set_output_allocator(i, [this, &entry](size_t bytes, const Dims&) { return provide(entry, bytes); });
  }
}

// Memory that a run still uses is freed behind it.
std::byte* DebugTensors::provide(Entry& entry, size_t bytes) const {
  if (entry.memory.data() && entry.memory.size() >= bytes) return entry.memory.data();
  Result<DeviceMemory> memory = context_.engine().device().allocate(std::max<size_t>(bytes, 1));
  if (!memory) return nullptr;
  entry.memory = *std::move(memory);
  return entry.memory.data();
}

Result<DebugTensors::Entry*> DebugTensors::find(const char* name) {
  const auto it = name ? tensors_.find(name) : tensors_.end();
  if (it != tensors_.end()) return &it->second;
  return fail(ErrorCode::binding_invalid, "'{}' is not a debug tensor of this engine; call markDebug() before building",
              name ? name : "(null)");
}

Result<> DebugTensors::turn(const char* name, bool on) {
  LATHE_ASSIGN(Entry * entry, find(name));
  entry->on = on;
  return {};
}

void DebugTensors::turn_all(bool on) {
  for (auto& [name, entry] : tensors_) entry.on = on;
}

Result<bool> DebugTensors::is_on(const char* name) {
  LATHE_ASSIGN(const Entry* entry, find(name));
  return entry->on;
}

void DebugTensors::set_listener(nv::IDebugListener* listener) {
  listener_ = listener;
  watch_steps();
}

Result<> DebugTensors::turn_unfused(bool on) {
  if (on && !find_key(engine_.plan(), kDebugUnfusedKey))
    return fail(ErrorCode::invalid_state,
                "the engine was built without markUnfusedTensorsAsDebugTensors(): call it before building");
  unfused_ = on;
  watch_steps();
  return {};
}

// Those that are debug tensors by name are delivered behind the run.
void DebugTensors::watch_steps() {
  context_.hooks.observer = nullptr;
  if (!unfused_ || !listener_) return;
  context_.hooks.observer = [this](const plan::TensorDesc& tensor, const Tensor& content) -> Result<> {
    const auto named = tensors_.find(tensor.name);
    if (named != tensors_.end() && named->second.on) return {};
    return give(content.data(), nv::TensorLocation::kHOST, content.dtype(), content.dims(), tensor.name);
  };
}

Result<> DebugTensors::give(const void* data, nv::TensorLocation location, DType dtype, const Dims& dims,
                            const std::string& name) const {
  LATHE_ASSIGN(const bool is_taken,
               call_application("IDebugListener::processDebugTensor", ErrorCode::execution_failed, [&] {
                 return listener_->processDebugTensor(data, location, to_nv(dtype), to_nv(dims), name.c_str(), stream_);
               }));
  if (is_taken) return {};
  return fail(ErrorCode::execution_failed, "the debug listener returned false for tensor '{}'", name);
}

Result<> DebugTensors::deliver() const {
  if (!listener_) return {};
  const Device& device = context_.engine().device();
  for (const auto& [name, entry] : tensors_) {
    if (!entry.on) continue;
    const void* data = context_.address(entry.binding);
    const bool on_host = device.is_host() || !device.is_accessible(data);
    LATHE_TRY(give(data, on_host ? nv::TensorLocation::kHOST : nv::TensorLocation::kDEVICE,
                   engine_.tensor(static_cast<int>(entry.binding)).dtype, context_.dims(entry.binding), name));
  }
  return {};
}

}  // namespace lathe::api
