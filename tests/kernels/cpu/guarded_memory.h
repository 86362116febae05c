// SPDX-License-Identifier: Apache-2.0
// Memory that ends at an inaccessible page: a kernel that reads or writes past its tensor crashes the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <vector>

namespace lathe::cpu {

template <class T>
struct GuardedAllocator {
  using value_type = T;
  GuardedAllocator() = default;
  template <class U>
  GuardedAllocator(const GuardedAllocator<U>&) {}

  T* allocate(size_t n) {
    const size_t total = mapped(n) + page();
    void* map = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    auto* guard = static_cast<std::byte*>(map) + mapped(n);
    if (mprotect(guard, page(), PROT_NONE) != 0) throw std::bad_alloc();
    return reinterpret_cast<T*>(guard - n * sizeof(T));
  }
  void deallocate(T* p, size_t n) {
    auto* end = reinterpret_cast<std::byte*>(p) + n * sizeof(T);
    munmap(end - mapped(n), mapped(n) + page());
  }
  bool operator==(const GuardedAllocator&) const { return true; }

 private:
  static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  static size_t mapped(size_t n) { return (n * sizeof(T) + page() - 1) / page() * page(); }
};

template <class T>
using GuardedVector = std::vector<T, GuardedAllocator<T>>;

}  // namespace lathe::cpu
