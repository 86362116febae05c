// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.h"

#include <sys/mman.h>

#include <cstring>

namespace emulator {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 1024;

size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

SharedMemory::~SharedMemory() {
  if (mapping_) munmap(mapping_, mapping_bytes_);
}

bool SharedMemory::allocate(size_t bytes) {
  const size_t pages = round_up(bytes, kPage);
  if (mapping_bytes_ != pages + 2 * kPage) {
    if (mapping_) munmap(mapping_, mapping_bytes_);
    mapping_ = nullptr;
    mapping_bytes_ = pages + 2 * kPage;
    void* memory = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    mapping_ = static_cast<unsigned char*>(memory);
    if (pages && mprotect(mapping_ + kPage, pages, PROT_READ | PROT_WRITE) != 0) return false;
  }
  data_ = mapping_ + kPage + pages - round_up(bytes, kAlignment);
  bytes_ = bytes;
  return true;
}

void SharedMemory::spoil() { std::memset(mapping_ + kPage, kPoison, mapping_bytes_ - 2 * kPage); }

bool SharedMemory::holds(const void* address, size_t bytes) const {
  const auto* byte = static_cast<const unsigned char*>(address);
  return byte >= data_ && byte + bytes <= data_ + bytes_;
}

bool SharedMemory::is_near(const void* address) const {
  const auto* byte = static_cast<const unsigned char*>(address);
  return byte >= mapping_ && byte < mapping_ + mapping_bytes_;
}

std::ptrdiff_t SharedMemory::find_overrun() const {
  const unsigned char* end = mapping_ + mapping_bytes_ - kPage;
  for (const unsigned char* byte = data_ + bytes_; byte < end; ++byte)
    if (*byte != kPoison) return byte - data_;
  return -1;
}

}  // namespace emulator
