// SPDX-License-Identifier: Apache-2.0
// Memory of an output whose size is known only when it is computed.
#pragma once

#include "wrapper/engine_device.h"

namespace lathe::wrapper {

class AllocatedOutput final : public nvinfer1::IOutputAllocator {
 public:
  // Before a run: the memory of the caller, or null for memory of the device.
  void start(const EngineDevice& device, void* given, int64_t bytes) {
    device_ = &device;
    given_ = given;
    given_bytes_ = bytes;
    dims_ = {};
    owner_.reset();
    data_ = nullptr;
  }

  void* reallocateOutputAsync(const char* name, void* current, uint64_t size, uint64_t alignment,
                              cudaStream_t stream) noexcept override;
  void notifyShape(const char*, const nvinfer1::Dims& dims) noexcept override { dims_ = dims; }

  void* data() const { return data_; }
  const nvinfer1::Dims& dims() const { return dims_; }
  std::shared_ptr<void> take_owner() { return std::move(owner_); }

 private:
  const EngineDevice* device_ = nullptr;
  void* given_ = nullptr;
  int64_t given_bytes_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
  nvinfer1::Dims dims_{};
};

}  // namespace lathe::wrapper
