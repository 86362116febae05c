// SPDX-License-Identifier: Apache-2.0
#include "wrapper/allocated_output.h"

namespace lathe::wrapper {

// Null is a failure, which the engine reports with the bytes.
void* AllocatedOutput::reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t, cudaStream_t) noexcept {
  try {
    data_ = nullptr;
    if (given_) return data_ = size <= static_cast<uint64_t>(given_bytes_) ? given_ : nullptr;
    Result<DeviceMemory> memory = device_->allocate(std::max<uint64_t>(size, 1));
    if (!memory) return nullptr;
    owner_ = share(std::move(*memory));
    return data_ = owner_.get();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace lathe::wrapper
