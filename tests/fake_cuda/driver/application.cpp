// SPDX-License-Identifier: Apache-2.0
// Functions that applications of the driver call, and the library does not: the programs of tools, for example.
#include <cstring>

#include "fake_cuda/driver/state.h"

namespace lathe::cuda {

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

FAKE_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned) {
  return cuMemAlloc_v2(address, bytes);  // the host can read every memory of these devices
}

FAKE_EXPORT CUresult cuLaunchHostFunc(CUstream stream, void (*call)(void*), void* user) {
  FAKE_ENTER(Needs::context);
  static const char kind = 0;
  const auto run = [call, user] {
    call(user);
    return CUDA_SUCCESS;
  };
  return fake_cuda::submit(stream, {&kind, run}, entry);
}

FAKE_EXPORT CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }

FAKE_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE_ENTER(Needs::nothing);
  const auto& stack = fake_cuda::context_stack();
  *context = stack.empty() ? nullptr : reinterpret_cast<CUcontext>(stack.back());
  return CUDA_SUCCESS;
}

FAKE_EXPORT CUresult cuDeviceGetUuid_v2(char* uuid, CUdevice device) {
  FAKE_ENTER(Needs::nothing);
  std::memset(uuid, 0, 16);
  uuid[15] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}

}  // namespace lathe::cuda
