// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace lathe {

// A static object whose destructor never runs: threads, engines and registrars that outlive main() use it. Its memory
// is the library's own, so that unmapping the library leaks nothing, provided that the object owns no other memory by
// then.
template <class T>
class NeverDestroyed {
 public:
  template <class... Args>
  explicit NeverDestroyed(Args&&... args) {
    ::new (static_cast<void*>(memory_)) T(std::forward<Args>(args)...);
  }
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;
  T& operator*() { return *std::launder(reinterpret_cast<T*>(memory_)); }

 private:
  alignas(T) std::byte memory_[sizeof(T)];
};

}  // namespace lathe
