// SPDX-License-Identifier: Apache-2.0
// The memory that an execution context is given, or takes.
#include <algorithm>

#include "api/deprecation.h"
#include "api/runtime/execution_context.h"
#include "api/runtime/gpu_allocator.h"

namespace lathe::api {

size_t ExecutionContext::updateDeviceMemorySizeForShapes() noexcept {
  return guarded(changing(), "IExecutionContext::updateDeviceMemorySizeForShapes", size_t{0},
                 [&]() -> Result<size_t> { return context_->memory_bytes(); });
}

void ExecutionContext::setDeviceMemory(void* memory) noexcept {
  static constinit Deprecation deprecation("IExecutionContext::setDeviceMemory", "setDeviceMemoryV2()");
  deprecation.tell(reporter_);
  guarded(changing(), "IExecutionContext::setDeviceMemory", [&]() -> Result<> {
    // As much as getDeviceMemorySizeV2() tells.
    size_t bytes = 0;
    for (size_t i = 0; memory && i < core_->plan().profiles.size(); ++i) {
      const MemoryLimit* limit = context_->engine().memory_limit(i);
      bytes = std::max(bytes, limit ? limit->total() : SIZE_MAX);
    }
    return context_->set_memory(memory, bytes);
  });
}

void ExecutionContext::setDeviceMemoryV2(void* memory, int64_t size) noexcept {
  guarded(changing(), "IExecutionContext::setDeviceMemoryV2", [&]() -> Result<> {
    if (size < 0) return fail(ErrorCode::invalid_argument, "size {} is negative", size);
    return context_->set_memory(memory, static_cast<size_t>(size));
  });
}

bool ExecutionContext::setTemporaryStorageAllocator(nv::IGpuAllocator* allocator) noexcept {
  return guarded(changing(), "IExecutionContext::setTemporaryStorageAllocator", [&]() -> Result<> {
    const std::shared_ptr<Device> device = context_->engine().shared_device();
    LATHE_TRY(context_->set_temporaries(with_allocator(device, allocator, core_->reporter)));
    storage_allocator_ = allocator;
    return {};
  });
}

}  // namespace lathe::api
