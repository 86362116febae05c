// SPDX-License-Identifier: Apache-2.0
// Large blocks of zeroed memory straight from the system; the largest are advised to use 2 MiB pages.
#pragma once

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace lathe {

class MemoryBlock {
 public:
  MemoryBlock() = default;
  static Result<MemoryBlock> allocate(size_t bytes);  // 0 gives an empty block
  MemoryBlock(MemoryBlock&& other) noexcept { swap(other); }
  MemoryBlock& operator=(MemoryBlock&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MemoryBlock();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(MemoryBlock& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace lathe
