// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/driver/control.h"

#include <cstring>

#include "fake_cuda/driver/state.h"

#define FAKE_CONTROL __attribute__((visibility("default")))

using fake_cuda::state;

namespace {

std::unique_lock<std::recursive_mutex> locked() { return std::unique_lock(state().mutex); }

}  // namespace

extern "C" {

FAKE_CONTROL void fake_cuda_reset() {
  const auto lock = locked();
  fake_cuda::State& known = state();
  for (fake_cuda::DeviceConfig& device : known.devices)
    if (device.context) fake_cuda::destroy_context(device);
  known.driver_version = 13000;
  known.devices.clear();
  known.devices.resize(1);
  known.host.clear();
  known.failures.clear();
  known.failed = 0;
  known.calls.clear();
  known.kernels.clear();
  known.cache_aside = 0;
  known.cache_windows.clear();
  known.launches.clear();
  known.stamps.clear();
}

FAKE_CONTROL size_t fake_cuda_cache_aside() { return state().cache_aside; }
FAKE_CONTROL size_t fake_cuda_cache_windows() { return state().cache_windows.size(); }
FAKE_CONTROL size_t fake_cuda_cache_window(size_t index) { return state().cache_windows.at(index); }

FAKE_CONTROL void fake_cuda_set_driver_version(int version) { state().driver_version = version; }

FAKE_CONTROL void fake_cuda_set_device_count(int count) {
  const auto lock = locked();
  state().devices.resize(count);
}

FAKE_CONTROL void fake_cuda_set_device(int ordinal, const char* name, int major, int minor, size_t memory_bytes) {
  const auto lock = locked();
  fake_cuda::DeviceConfig& device = state().devices.at(ordinal);
  device.name = name;
  device.major = major;
  device.minor = minor;
  device.memory_bytes = memory_bytes;
}

FAKE_CONTROL void fake_cuda_set_device_pools(int ordinal, int supported) {
  state().devices.at(ordinal).pools = supported != 0;
}

FAKE_CONTROL void fake_cuda_set_device_attribute(int ordinal, int attribute, int value) {
  const auto lock = locked();
  state().devices.at(ordinal).attributes[attribute] = value;
}

FAKE_CONTROL void fake_cuda_fail(const char* function, size_t nth, int code, int sticky) {
  const auto lock = locked();
  state().failures.push_back({function ? function : "", nth, static_cast<fake_cuda::CUresult>(code), sticky != 0});
}

FAKE_CONTROL size_t fake_cuda_calls() {
  const auto lock = locked();
  return state().calls.size();
}

FAKE_CONTROL const char* fake_cuda_call(size_t index) {
  const auto lock = locked();
  return state().calls.at(index);
}

FAKE_CONTROL size_t fake_cuda_failures() {
  const auto lock = locked();
  return state().failed;
}

FAKE_CONTROL size_t fake_cuda_live(const char* kind) {
  const auto lock = locked();
  fake_cuda::State& known = state();
  const std::string_view wanted(kind);
  if (wanted == "memory") return known.memory.size();
  if (wanted == "stream") return known.streams.size();
  if (wanted == "event") return known.events.size();
  if (wanted == "graph") return known.graphs.size();
  if (wanted == "executable") return known.executables.size();
  if (wanted == "module") return known.modules.size();
  if (wanted == "link") return known.links.size();
  size_t retained = 0;
  for (const fake_cuda::DeviceConfig& device : known.devices)
    if (device.context) retained += device.context->retained;
  return retained;
}

FAKE_CONTROL size_t fake_cuda_allocated_bytes(int ordinal) {
  const auto lock = locked();
  return fake_cuda::allocated_bytes(state().devices.at(ordinal).context.get());
}

FAKE_CONTROL void fake_cuda_use_memory(int ordinal, size_t bytes) {
  const auto lock = locked();
  state().devices.at(ordinal).used_elsewhere = bytes;
}

FAKE_CONTROL int fake_cuda_inside() { return fake_cuda::Inside::depth() > 0; }

FAKE_CONTROL void* fake_cuda_current_context() {
  return fake_cuda::context_stack().empty() ? nullptr : fake_cuda::context_stack().back();
}

FAKE_CONTROL int fake_cuda_is_current(int ordinal) {
  const auto lock = locked();
  const void* current = fake_cuda_current_context();
  return current && current == state().devices.at(ordinal).context.get();
}

FAKE_CONTROL void fake_cuda_register(const void* address, size_t bytes, unsigned type, int managed, int ordinal) {
  const auto lock = locked();
  state().host[reinterpret_cast<uintptr_t>(address)] = {bytes, type, managed != 0, ordinal};
}

FAKE_CONTROL int fake_cuda_holds(const void* address, size_t bytes) {
  const auto lock = locked();
  const auto at = reinterpret_cast<fake_cuda::CUdeviceptr>(address);
  auto block = state().memory.upper_bound(at);
  if (block == state().memory.begin()) return 0;
  --block;
  return at - block->first + bytes <= block->second.size;
}

FAKE_CONTROL void fake_cuda_set_kernel(const char* name, fake_cuda_kernel run, void* user) {
  const auto lock = locked();
  state().kernels[name] = {run, user};
}

FAKE_CONTROL size_t fake_cuda_launches() {
  const auto lock = locked();
  return state().launches.size();
}

FAKE_CONTROL const fake_cuda_launch* fake_cuda_launched(size_t index) {
  const auto lock = locked();
  return &state().launches.at(index);
}

FAKE_CONTROL size_t fake_cuda_unknown_streams() {
  const auto lock = locked();
  return state().unknown_streams;
}

FAKE_CONTROL int fake_cuda_ordered(size_t first, size_t second) {
  const auto lock = locked();
  const fake_cuda::Stamp &earlier = state().stamps.at(first), &later = state().stamps.at(second);
  const auto ended = later.before.find(earlier.stream);
  return ended != later.before.end() && ended->second >= earlier.position;
}

}  // extern "C"
