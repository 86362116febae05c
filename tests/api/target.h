// SPDX-License-Identifier: Apache-2.0
// Where the tests of this folder build for: they run on the CPU, and again on the emulated GPU (area.cmake).
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace nvinfer1 {

inline bool on_gpu() {
  const char* target = std::getenv("LATHE_TARGET");
  return target && std::string_view(target).substr(0, 4) == "cuda";
}

// The driver that Lathe opens: on a machine with a GPU no variable needs to name it.
inline void* driver_library() {
  const char* path = std::getenv("LATHE_CUDA_DRIVER");
  void* const library = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW);
  return library ? library : throw std::runtime_error(dlerror());
}

template <class F>
F* driver_function(const char* name) {
  return reinterpret_cast<F*>(dlsym(driver_library(), name));
}

// There the host cannot read what engines write, but through the driver.
inline bool on_real_gpu() { return on_gpu() && !driver_function<void(int)>("fake_cuda_set_device_count"); }

// Memory that contexts may work in: the device's.
inline std::shared_ptr<void> context_memory(size_t bytes) {
  if (!on_gpu()) return {std::aligned_alloc(256, (bytes + 255) / 256 * 256), std::free};
  auto* const init = driver_function<int(unsigned)>("cuInit");
  auto* const retain = driver_function<int(void**, int)>("cuDevicePrimaryCtxRetain");
  auto* const push = driver_function<int(void*)>("cuCtxPushCurrent_v2");
  auto* const pop = driver_function<int(void**)>("cuCtxPopCurrent_v2");
  auto* const allocate = driver_function<int(uintptr_t*, size_t)>("cuMemAlloc_v2");
  auto* const release = driver_function<int(uintptr_t)>("cuMemFree_v2");
  auto* const let_go = driver_function<int(int)>("cuDevicePrimaryCtxRelease_v2");
  void* context = nullptr;
  uintptr_t memory = 0;
  if (init(0) || retain(&context, 0) || push(context) || allocate(&memory, bytes) || pop(&context)) return nullptr;
  return {reinterpret_cast<void*>(memory), [=](void* block) {
            void* popped = context;
            push(popped);
            release(reinterpret_cast<uintptr_t>(block));
            pop(&popped);
            let_go(0);
          }};
}

}  // namespace nvinfer1
