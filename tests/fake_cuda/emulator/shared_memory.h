// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block, between pages that fault.
#pragma once

#include <cstddef>

namespace emulator {

inline constexpr unsigned char kPoison = 0xff;  // what no thread should read: floats of it are NaN

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  bool allocate(size_t bytes);  // false when there is no memory
  // Fills it with poison.
  void spoil();
  unsigned char* data() const { return data_; }
  bool holds(const void* address, size_t bytes) const;
  bool is_near(const void* address) const;  // in it, or in a page around it
  // How far behind the start somebody wrote past the end since spoil(); -1 = nowhere.
  std::ptrdiff_t find_overrun() const;

 private:
  unsigned char* mapping_ = nullptr;  // guard page, pages of the memory, guard page
  size_t mapping_bytes_ = 0;
  unsigned char* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace emulator
