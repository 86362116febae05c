// SPDX-License-Identifier: Apache-2.0
// Devices and contexts of the stand-in driver.
#include <cstdio>

#include "fake_cuda/driver/state.h"

namespace {

using fake_cuda::state;

fake_cuda::DeviceConfig* find_device(lathe::cuda::CUdevice device) {
  auto& devices = state().devices;
  return device >= 0 && static_cast<size_t>(device) < devices.size() ? &devices[device] : nullptr;
}

}  // namespace

namespace lathe::cuda {
extern "C" {

CUresult cuDriverGetVersion(int* version) {
  FAKE_ENTER(Needs::nothing);
  *version = state().driver_version;
  return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags) {
  FAKE_ENTER(Needs::nothing);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (state().devices.empty()) return CUDA_ERROR_NO_DEVICE;
  state().initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "CUDA_ERROR";
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "error";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  FAKE_ENTER(Needs::nothing);
  if (!state().initialized) return CUDA_ERROR_NOT_INITIALIZED;
  *count = static_cast<int>(state().devices.size());
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_ENTER(Needs::nothing);
  if (!find_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  FAKE_ENTER(Needs::nothing);
  if (!find_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, size, "%s", find_device(device)->name.c_str());
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  FAKE_ENTER(Needs::nothing);
  if (!find_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = find_device(device)->memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  FAKE_ENTER(Needs::nothing);
  const fake_cuda::DeviceConfig* found = find_device(device);
  if (!found) return CUDA_ERROR_INVALID_DEVICE;
  const std::map<CUdevice_attribute, int> values = {
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 50 << 20},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, found->major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, found->minor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 << 10},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
      {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
      {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, found->major >= 8 ? 30 << 20 : 0},
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, found->pools},
      {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, found->major >= 9},
  };
  if (!values.contains(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const auto own = found->attributes.find(attribute);
  *value = own == found->attributes.end() ? values.at(attribute) : own->second;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_ENTER(Needs::nothing);
  if (!state().initialized) return CUDA_ERROR_NOT_INITIALIZED;
  fake_cuda::DeviceConfig* found = find_device(device);
  if (!found) return CUDA_ERROR_INVALID_DEVICE;
  if (!found->context) found->context = std::make_unique<fake_cuda::Context>();
  found->context->ordinal = device;
  ++found->context->retained;
  *context = reinterpret_cast<CUcontext>(found->context.get());
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FAKE_ENTER_RELEASE(Needs::nothing);
  fake_cuda::DeviceConfig* found = find_device(device);
  if (!found || !found->context || found->context->retained == 0) return CUDA_ERROR_INVALID_DEVICE;
  if (--found->context->retained == 0) fake_cuda::destroy_context(*found);
  return entry.result;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  FAKE_ENTER(Needs::context);
  *device = fake_cuda::context_stack().back()->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  FAKE_ENTER(Needs::nothing);
  auto* pushed = reinterpret_cast<fake_cuda::Context*>(context);
  if (!pushed || pushed->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  fake_cuda::context_stack().push_back(pushed);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  FAKE_ENTER_RELEASE(Needs::nothing);
  auto& stack = fake_cuda::context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = reinterpret_cast<CUcontext>(stack.back());
  stack.pop_back();
  return entry.result;
}

}  // extern "C"
}  // namespace lathe::cuda
