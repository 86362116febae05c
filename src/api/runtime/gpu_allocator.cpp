// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/gpu_allocator.h"

namespace lathe::api {
namespace {

constexpr uint64_t kAlignment = 256;

// The stream-ordered functions fall back to the others in allocators that do not have them.
class AllocatorSource final : public MemorySource {
 public:
  AllocatorSource(nv::IGpuAllocator& allocator, std::shared_ptr<const Reporter> reporter)
      : allocator_(allocator), reporter_(std::move(reporter)) {}

  void* allocate(size_t bytes, void* stream) override {
    return allocator_.allocateAsync(bytes, kAlignment, nv::AllocatorFlags{0}, static_cast<cudaStream_t>(stream));
  }
  void free(void* memory, void* stream) override {
    if (!allocator_.deallocateAsync(memory, static_cast<cudaStream_t>(stream)))
      reporter_->log().print(Severity::error, "the application's allocator did not take back its memory at {}", memory);
  }

 private:
  nv::IGpuAllocator& allocator_;
  const std::shared_ptr<const Reporter> reporter_;
};

}  // namespace

std::shared_ptr<Device> with_allocator(std::shared_ptr<Device> device, nv::IGpuAllocator* allocator,
                                       std::shared_ptr<const Reporter> reporter) {
  if (!allocator || !device) return device;
  std::shared_ptr<Device> with =
      device->allocating_from(std::make_shared<AllocatorSource>(*allocator, std::move(reporter)));
  return with ? with : device;
}

}  // namespace lathe::api
