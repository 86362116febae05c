// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcudart.so on the stand-in driver: what Polygraphy calls, in the primary context of device 0.
#include <cstring>

#include "fake_cuda/driver/state.h"

namespace lathe::cuda {

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Numbers of cudaMemcpyKind.
constexpr int kHostToHost = 0;
constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;

// The primary context of device 0, which is the current one while this lives.
class Current {
 public:
  Current() {
    static const CUcontext context = [] {
      CUcontext retained = nullptr;
      if (cuInit(0) == CUDA_SUCCESS) cuDevicePrimaryCtxRetain(&retained, 0);
      return retained;
    }();
    result_ = cuCtxPushCurrent_v2(context);
  }
  ~Current() {
    CUcontext popped = nullptr;
    if (result_ == CUDA_SUCCESS) cuCtxPopCurrent_v2(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  template <typename Call>
  int run(Call call) const {
    return static_cast<int>(result_ != CUDA_SUCCESS ? result_ : call());
  }

 private:
  CUresult result_;
};

CUdeviceptr device_address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

FAKE_EXPORT int cudaMalloc(void** memory, size_t size) {
  return Current().run([&] { return cuMemAlloc_v2(reinterpret_cast<CUdeviceptr*>(memory), size); });
}

FAKE_EXPORT int cudaFree(void* memory) {
  return Current().run([&] { return memory == nullptr ? CUDA_SUCCESS : cuMemFree_v2(device_address(memory)); });
}

FAKE_EXPORT int cudaMemcpyAsync(void* to, const void* from, size_t size, int kind, CUstream stream) {
  return Current().run([&] {
    if (kind == kHostToDevice) return cuMemcpyHtoDAsync_v2(device_address(to), from, size, stream);
    if (kind == kDeviceToHost) return cuMemcpyDtoHAsync_v2(to, device_address(from), size, stream);
    if (kind != kHostToHost) return cuMemcpyAsync(device_address(to), device_address(from), size, stream);
    std::memmove(to, from, size);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT int cudaMemcpy(void* to, const void* from, size_t size, int kind) {
  return cudaMemcpyAsync(to, from, size, kind, nullptr);  // copies of these devices are done when their call returns
}

FAKE_EXPORT int cudaStreamCreate(CUstream* stream) {
  return Current().run([&] { return cuStreamCreate(stream, 0); });
}

FAKE_EXPORT int cudaStreamDestroy(CUstream stream) {
  return Current().run([&] { return cuStreamDestroy_v2(stream); });
}

FAKE_EXPORT int cudaStreamSynchronize(CUstream stream) {
  return Current().run([&] { return cuStreamSynchronize(stream); });
}

}  // namespace lathe::cuda
