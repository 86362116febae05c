// SPDX-License-Identifier: Apache-2.0
// Where the tests of this folder build for: they run on the CPU, and again on the emulated GPU (area.cmake).
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace nvinfer1 {

inline bool on_gpu() {
  const char* target = std::getenv("LATHE_TARGET");
  return target && std::string_view(target).substr(0, 4) == "cuda";
}

// There the host cannot read what engines write, but through the driver.
inline bool on_real_gpu() {
  return on_gpu() && !dlsym(dlopen(std::getenv("LATHE_CUDA_DRIVER"), RTLD_NOW), "fake_cuda_set_device_count");
}

// Memory that contexts may work in: the device's.
inline std::shared_ptr<void> context_memory(size_t bytes) {
  if (!on_gpu()) return {std::aligned_alloc(256, (bytes + 255) / 256 * 256), std::free};
  void* const driver = dlopen(std::getenv("LATHE_CUDA_DRIVER"), RTLD_NOW);
  const auto function = [&]<typename F>(const char* name, F*) { return reinterpret_cast<F*>(dlsym(driver, name)); };
  const auto init = function("cuInit", static_cast<int (*)(unsigned)>(nullptr));
  const auto retain = function("cuDevicePrimaryCtxRetain", static_cast<int (*)(void**, int)>(nullptr));
  const auto push = function("cuCtxPushCurrent_v2", static_cast<int (*)(void*)>(nullptr));
  const auto pop = function("cuCtxPopCurrent_v2", static_cast<int (*)(void**)>(nullptr));
  const auto allocate = function("cuMemAlloc_v2", static_cast<int (*)(uintptr_t*, size_t)>(nullptr));
  const auto release = function("cuMemFree_v2", static_cast<int (*)(uintptr_t)>(nullptr));
  const auto let_go = function("cuDevicePrimaryCtxRelease_v2", static_cast<int (*)(int)>(nullptr));
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
