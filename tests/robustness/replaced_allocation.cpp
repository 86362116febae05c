// SPDX-License-Identifier: Apache-2.0
// Everything through which Lathe gets memory, able to fail and counted: operator new, aligned_alloc, mmap, CPU_ALLOC.
// All but the first are wrapped by the linker (area.cmake), so that other libraries keep theirs.
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "robustness/allocation_sweep.h"

extern "C" {
void* __real_aligned_alloc(std::size_t alignment, std::size_t size) noexcept;  // NOLINT
void __real_free(void* memory) noexcept;                                       // NOLINT
void* __real_mmap(void* address, std::size_t size, int protection, int flags, int file,
                  off_t offset) noexcept;                        // NOLINT
int __real_munmap(void* address, std::size_t size) noexcept;     // NOLINT
cpu_set_t* __real___sched_cpualloc(std::size_t count) noexcept;  // NOLINT
void __real___sched_cpufree(cpu_set_t* set) noexcept;            // NOLINT
}

namespace {

using lathe::allocation_counter;

void count(long blocks) {
  allocation_counter.live += blocks;
  lathe::live_blocks += blocks;
}
void* counted(void* memory) {
  if (memory) count(1);
  return memory;
}

// The blocks of aligned_alloc that live on this thread: free() also gets what other libraries allocated.
class AlignedBlocks {
 public:
  void add(void* block) {
    if (count_ == blocks_.size()) std::abort();
    blocks_[count_++] = block;
  }
  bool remove(const void* block) {
    for (std::size_t i = count_; i-- > 0;)
      if (blocks_[i] == block) {
        blocks_[i] = blocks_[--count_];
        return true;
      }
    return false;
  }

 private:
  std::array<void*, 1 << 14> blocks_{};
  std::size_t count_ = 0;
};
thread_local AlignedBlocks aligned_blocks;

}  // namespace

[[gnu::noinline]] static void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (!allocation_counter.allow()) return nullptr;
  if (size == 0) size = 1;
  return counted(alignment <= alignof(std::max_align_t) ? std::malloc(size) : memalign(alignment, size));
}
// Kept out of line: inlined into a replaced operator delete, g++ takes the call for a mismatch with operator new.
[[gnu::noinline]] static void release(void* memory) noexcept {
  if (memory) count(-1);
  __real_free(memory);
}

void* operator new(std::size_t size) {
  if (void* memory = allocate(size, 1)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  if (void* memory = allocate(size, static_cast<std::size_t>(alignment))) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { release(memory); }
// Arrays come here by themselves, except where a sanitizer brings its own operators.
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, const std::nothrow_t& nothrow) noexcept { return operator new(size, nothrow); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }

extern "C" {

void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) noexcept {  // NOLINT
  if (!allocation_counter.allow()) return nullptr;
  void* memory = counted(__real_aligned_alloc(alignment, size));
  if (memory) aligned_blocks.add(memory);
  return memory;
}

void __wrap_free(void* memory) noexcept {  // NOLINT
  if (memory && aligned_blocks.remove(memory)) count(-1);
  __real_free(memory);
}

void* __wrap_mmap(void* address, std::size_t size, int protection, int flags, int file,
                  off_t offset) noexcept {  // NOLINT
  if (!allocation_counter.allow()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* memory = __real_mmap(address, size, protection, flags, file, offset);
  if (memory != MAP_FAILED) count(1);
  return memory;
}

int __wrap_munmap(void* address, std::size_t size) noexcept {  // NOLINT
  const int result = __real_munmap(address, size);
  if (result == 0) count(-1);
  return result;
}

// CPU_ALLOC and CPU_FREE.
cpu_set_t* __wrap___sched_cpualloc(std::size_t count) noexcept {  // NOLINT
  if (!allocation_counter.allow()) return nullptr;
  return static_cast<cpu_set_t*>(counted(__real___sched_cpualloc(count)));
}

void __wrap___sched_cpufree(cpu_set_t* set) noexcept {  // NOLINT
  if (set) count(-1);
  __real___sched_cpufree(set);
}
}
