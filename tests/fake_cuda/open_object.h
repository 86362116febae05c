// SPDX-License-Identifier: Apache-2.0
// Loads a shared object that lies in memory. The loader knows libraries by their path, and some never leave it: so each
// gets a path of its own, which is gone when this returns.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace fake_cuda {

// dlopen()'s handle, or null.
inline void* open_object(const void* bytes, size_t size) {
  char path[] = "/tmp/lathe_kernel_XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) return nullptr;
  const bool written = write(file, bytes, size) == static_cast<ssize_t>(size);
  close(file);
  void* library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path);
  return library;
}

}  // namespace fake_cuda
