// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory.h"

#include <sys/mman.h>

namespace lathe {
namespace {

constexpr size_t kHugePage = 2u << 20;
// Below this the processor's second-level TLB reaches the block with small pages, and steady inference is no faster
// with huge ones. Getting them costs up to 2.5 ms each on a virtual machine whose host has taken its free memory back.
constexpr size_t kWorthHugePages = 32u << 20;

}  // namespace

Result<MemoryBlock> MemoryBlock::allocate(size_t bytes) {
  MemoryBlock block;
  if (bytes == 0) return block;
  const size_t unit = bytes >= kWorthHugePages ? kHugePage : 4096;
  if (bytes > SIZE_MAX - unit) return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", bytes);
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  void* address = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", bytes);
  if (unit == kHugePage) ::madvise(address, rounded, MADV_HUGEPAGE);
  block.data_ = static_cast<std::byte*>(address);
  block.size_ = rounded;
  return block;
}

MemoryBlock::~MemoryBlock() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace lathe
