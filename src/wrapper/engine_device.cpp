// SPDX-License-Identifier: Apache-2.0
#include "wrapper/engine_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/divide.h"
#include "device/cuda/memory.h"
#include "device/cuda/order_event.h"

namespace lathe::wrapper {
namespace {

constexpr size_t kAlignment = 256;
constexpr int kLeastCompatibleMajor = 8;

std::string text_of(const EngineTarget& gpu) {
  return fmt::format("cuda:{} ({}, compute capability {}.{})", gpu.id, gpu.name, gpu.major, gpu.minor);
}

bool runs(const EngineTarget& gpu, const EngineTarget& wanted, bool hardware_compatible) {
  if (gpu.major == wanted.major && gpu.minor == wanted.minor) return true;
  return hardware_compatible && gpu.major >= kLeastCompatibleMajor;
}

Result<DeviceMemory> allocate_on_host(size_t bytes) {
  void* const memory = std::aligned_alloc(kAlignment, round_up(std::max<size_t>(bytes, 1), kAlignment));
  if (!memory) return fail(ErrorCode::out_of_memory, "there are no {} bytes of the host's memory", bytes);
  return DeviceMemory(static_cast<std::byte*>(memory), bytes, nullptr,
                      [](void*, std::byte* data, size_t) { std::free(data); });
}

}  // namespace

Result<std::vector<EngineTarget>> list_gpus() {
  LATHE_ASSIGN(const cuda::Driver* const driver, cuda::driver());
  LATHE_ASSIGN(const int count, cuda::count_devices(*driver));
  std::vector<EngineTarget> gpus;
  for (int i = 0; i < count; ++i) {
    LATHE_ASSIGN(const cuda::DeviceProperties gpu, cuda::read_properties(*driver, i));
    gpus.push_back({i, gpu.major, gpu.minor, EngineTarget::Kind::kGPU, gpu.name});
  }
  return gpus;
}

int current_gpu() {
  const Result<const cuda::Driver*> driver = cuda::driver();
  cuda::CUdevice current = -1, device = -1;
  if (!driver || (*driver)->cuCtxGetDevice(&current) != cuda::CUDA_SUCCESS) return -1;
  const Result<int> count = cuda::count_devices(**driver);
  for (int i = 0; count && i < *count; ++i)
    if ((*driver)->cuDeviceGet(&device, i) == cuda::CUDA_SUCCESS && device == current) return i;
  return -1;
}

Result<EngineTarget> choose_gpu(const EngineTarget& wanted, bool hardware_compatible,
                                const std::vector<EngineTarget>& gpus, int current) {
  std::vector<const EngineTarget*> candidates;
  std::string seen;
  for (const EngineTarget& gpu : gpus) {
    if (runs(gpu, wanted, hardware_compatible)) candidates.push_back(&gpu);
    seen += fmt::format("{}{}", seen.empty() ? "" : ", ", text_of(gpu));
  }
  if (candidates.empty())
    return fail(ErrorCode::plan_target,
                "the engine was made for {}{}, and none of this machine's GPUs runs it ({}): build it for one of them, "
                "or with HardwareCompatibilityLevel::kAMPERE_PLUS",
                text_of(wanted), hardware_compatible ? " and every GPU from compute capability 8.0 on" : "",
                seen.empty() ? "there is none" : seen);
  const auto first = [&](auto&& is_it) {
    const auto found = std::find_if(candidates.begin(), candidates.end(), is_it);
    return found == candidates.end() ? nullptr : *found;
  };
  if (const EngineTarget* gpu = first([&](const EngineTarget* gpu) { return gpu->id == current; })) return *gpu;
  if (const EngineTarget* gpu = first([&](const EngineTarget* gpu) { return gpu->id == wanted.id; })) return *gpu;
  if (const EngineTarget* gpu = first([&](const EngineTarget* gpu) { return gpu->name == wanted.name; })) return *gpu;
  return *candidates.front();
}

Result<EngineDevice> EngineDevice::open(const EngineTarget& target) {
  EngineDevice device;
  device.target_ = target;
  if (target.kind == EngineTarget::Kind::kCPU) return device;
  LATHE_ASSIGN(const cuda::Driver* const driver, cuda::driver());
  LATHE_ASSIGN(const cuda::DeviceProperties properties, cuda::read_properties(*driver, target.id));
  LATHE_ASSIGN(device.context_, cuda::PrimaryContext::create(*driver, properties));
  return device;
}

Result<std::optional<cuda::ContextScope>> EngineDevice::enter() const {
  std::optional<cuda::ContextScope> scope;
  if (is_host()) return scope;
  LATHE_ASSIGN(cuda::ContextScope entered, cuda::ContextScope::enter(*context_));
  scope.emplace(std::move(entered));
  return scope;
}

Result<DeviceMemory> EngineDevice::allocate(size_t bytes) const {
  return is_host() ? allocate_on_host(bytes) : cuda::allocate(context_, bytes);
}

std::unique_ptr<cuda::Stream> EngineDevice::borrow(void* stream) const {
  return cuda::Stream::borrow(context_, static_cast<cuda::CUstream>(stream));
}

Result<std::unique_ptr<cuda::Stream>> EngineDevice::make_stream() const { return cuda::Stream::create(context_); }

Result<std::unique_ptr<cuda::CudaGraph>> EngineDevice::capture(
    const std::function<Result<>(void* stream)>& work) const {
  return cuda::CudaGraph::capture(context_,
                                  [&](Queue& queue) { return work(static_cast<cuda::Stream&>(queue).handle()); });
}

Result<> EngineDevice::order(cuda::Stream& before, cuda::Stream& after) const {
  LATHE_ASSIGN(const std::unique_ptr<Event> event, cuda::OrderEvent::create(context_));
  LATHE_TRY(event->record(before));
  return event->hold(after);
}

bool EngineDevice::is_accessible(const void* address) const {
  return is_host() || cuda::is_accessible(*context_, address);
}

Result<> EngineDevice::copy(void* to, const void* from, size_t bytes, cuda::Stream* stream) const {
  if (stream) {
    RowsCopy rows;
    rows.to = static_cast<std::byte*>(to);
    rows.from = static_cast<const std::byte*>(from);
    rows.width = bytes;
    return cuda::copy(rows, *stream);
  }
  if (bytes > 0) std::memcpy(to, from, bytes);
  return {};
}

Result<> EngineDevice::upload(void* to, const void* from, size_t bytes, cuda::Stream* stream) const {
  return stream ? cuda::upload(to, from, bytes, *stream) : copy(to, from, bytes, nullptr);
}

Result<> EngineDevice::download(void* to, const void* from, size_t bytes, cuda::Stream* stream) const {
  return stream ? cuda::download(to, from, bytes, *stream) : copy(to, from, bytes, nullptr);
}

std::shared_ptr<void> share(DeviceMemory memory) {
  auto shared = std::make_shared<DeviceMemory>(std::move(memory));
  void* const data = shared->data();
  return {std::move(shared), data};
}

}  // namespace lathe::wrapper
