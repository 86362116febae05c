// SPDX-License-Identifier: Apache-2.0
// Memory of the stand-in driver: the host's, within each device's limit.
#include <cstdlib>
#include <cstring>

#include "fake_cuda/driver/state.h"

namespace fake_cuda {
namespace {

constexpr size_t kAlignment = 512;
constexpr int kPoison = 0xCD;  // what new memory holds

Context* current() { return context_stack().back(); }
DeviceConfig& device_of(const Context* context) { return state().devices[context->ordinal]; }

size_t free_bytes(const Context* context) {
  const DeviceConfig& device = device_of(context);
  const size_t used = allocated_bytes(context) + device.used_elsewhere;
  return used < device.memory_bytes ? device.memory_bytes - used : 0;
}

CUresult allocate(CUdeviceptr* address, size_t bytes, bool pooled) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > free_bytes(current())) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(memory, kPoison, bytes);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  state().memory[*address] = {bytes, current(), pooled};
  return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr address, bool pooled_only) {
  const auto found = state().memory.find(address);
  if (found == state().memory.end() || (pooled_only && !found->second.pooled)) return CUDA_ERROR_INVALID_VALUE;
  std::free(reinterpret_cast<void*>(address));
  state().memory.erase(found);
  return CUDA_SUCCESS;
}

// The allocation that the range lies in.
const Allocation* find_range(CUdeviceptr address, size_t bytes) {
  auto found = state().memory.upper_bound(address);
  if (found == state().memory.begin()) return nullptr;
  --found;
  const size_t offset = address - found->first;
  return offset <= found->second.size && bytes <= found->second.size - offset ? &found->second : nullptr;
}

const HostRange* find_host(CUdeviceptr address) {
  auto found = state().host.upper_bound(address);
  if (found == state().host.begin()) return nullptr;
  --found;
  return address - found->first < found->second.size ? &found->second : nullptr;
}

CUresult copy(CUstream stream, void* to, const void* from, size_t bytes, CUdeviceptr on_device, Entry& entry) {
  static const char kind = 0;
  if (!find_range(on_device, bytes) && !find_host(on_device)) return CUDA_ERROR_INVALID_VALUE;
  const auto run = [to, from, bytes] {
    std::memcpy(to, from, bytes);
    return CUDA_SUCCESS;
  };
  return submit(stream, {&kind, run}, entry);
}

bool is_known(CUdeviceptr address, size_t bytes) { return find_range(address, bytes) || find_host(address); }

CUresult copy_rows(CUstream stream, const CUDA_MEMCPY2D& copy, Entry& entry) {
  static const char kind = 0;
  if (copy.srcMemoryType != CU_MEMORYTYPE_UNIFIED || copy.dstMemoryType != CU_MEMORYTYPE_UNIFIED || copy.Height == 0 ||
      copy.srcPitch < copy.WidthInBytes || copy.dstPitch < copy.WidthInBytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (!is_known(copy.dstDevice, (copy.Height - 1) * copy.dstPitch + copy.WidthInBytes) ||
      !is_known(copy.srcDevice, (copy.Height - 1) * copy.srcPitch + copy.WidthInBytes))
    return CUDA_ERROR_INVALID_VALUE;
  const auto run = [copy] {
    for (size_t i = 0; i < copy.Height; ++i)
      std::memcpy(reinterpret_cast<std::byte*>(copy.dstDevice) + i * copy.dstPitch,
                  reinterpret_cast<const std::byte*>(copy.srcDevice) + i * copy.srcPitch, copy.WidthInBytes);
    return CUDA_SUCCESS;
  };
  return submit(stream, {&kind, run}, entry);
}

}  // namespace
}  // namespace fake_cuda

namespace lathe::cuda {
extern "C" {

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  FAKE_ENTER(Needs::context);
  *free = fake_cuda::free_bytes(fake_cuda::current());
  *total = fake_cuda::device_of(fake_cuda::current()).memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  FAKE_ENTER(Needs::context);
  if (const CUresult forbidden = fake_cuda::check_capture(); forbidden != CUDA_SUCCESS) return forbidden;
  return fake_cuda::allocate(address, bytes, false);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  FAKE_ENTER_RELEASE(Needs::context);
  const CUresult released = fake_cuda::release(address, false);
  return entry.result != CUDA_SUCCESS ? entry.result : released;
}

CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned) {
  FAKE_ENTER(Needs::context);
  *address = std::malloc(bytes);
  if (!*address) return CUDA_ERROR_OUT_OF_MEMORY;
  fake_cuda::state().host[reinterpret_cast<uintptr_t>(*address)] = {bytes, CU_MEMORYTYPE_HOST, false, 0};
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* address) {
  FAKE_ENTER_RELEASE(Needs::context);
  if (fake_cuda::state().host.erase(reinterpret_cast<uintptr_t>(address)) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::free(address);
  return entry.result;
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  FAKE_ENTER(Needs::context);
  const fake_cuda::Stream* found = fake_cuda::find_stream(stream);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  if (!fake_cuda::device_of(fake_cuda::current()).pools || found->capture) return CUDA_ERROR_NOT_SUPPORTED;
  return fake_cuda::allocate(address, bytes, true);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  FAKE_ENTER_RELEASE(Needs::context);
  if (entry.result == CUDA_SUCCESS && !fake_cuda::find_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult released = fake_cuda::release(address, true);
  return entry.result != CUDA_SUCCESS ? entry.result : released;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  FAKE_ENTER(Needs::context);
  return fake_cuda::copy(stream, reinterpret_cast<void*>(to), from, bytes, to, entry);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FAKE_ENTER(Needs::context);
  return fake_cuda::copy(stream, to, reinterpret_cast<const void*>(from), bytes, from, entry);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FAKE_ENTER(Needs::context);
  if (!fake_cuda::is_known(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return fake_cuda::copy(stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, to, entry);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  FAKE_ENTER(Needs::context);
  return fake_cuda::copy_rows(stream, *copy, entry);
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr address) {
  FAKE_ENTER(Needs::nothing);
  const fake_cuda::Allocation* allocation = fake_cuda::find_range(address, 1);
  const fake_cuda::HostRange* host = fake_cuda::find_host(address);
  for (unsigned i = 0; i < count; ++i) switch (attributes[i]) {
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(values[i]) = allocation ? unsigned{CU_MEMORYTYPE_DEVICE} : host ? host->type : 0;
        break;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(values[i]) = host && host->managed;
        break;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(values[i]) = allocation ? allocation->context->ordinal : host ? host->ordinal : -2;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  return CUDA_SUCCESS;
}

}  // extern "C"
}  // namespace lathe::cuda
