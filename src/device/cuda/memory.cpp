// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/memory.h"

#include <algorithm>

#include "base/divide.h"
#include "base/memory_tally.h"

namespace lathe::cuda {
namespace {

constexpr size_t kAlignment = 256;

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

void free_block(void* owner, std::byte* data, size_t size) {
  device_tally().remove(size);
  auto& context = *static_cast<PrimaryContext*>(owner);
  const ContextScope scope(context);
  context.driver().cuMemFree(address_of(data));  // waits for the device
}

void free_pooled(void* owner, std::byte* data, size_t size) {
  device_tally().remove(size);
  auto& context = *static_cast<PrimaryContext*>(owner);
  const ContextScope scope(context);
  context.follow_all(context.releases());
  context.driver().cuMemFreeAsync(address_of(data), context.releases());
}

void free_to_source(void* owner, std::byte* data, size_t size) {
  device_tally().remove(size);
  auto& from = *static_cast<ContextSource*>(owner);
  const ContextScope scope(*from.context);
  const CUstream stream = from.context->releases();
  from.context->follow_all(stream);
  from.context->driver().cuStreamSynchronize(stream);  // an allocator may look at no stream
  from.source->free(data, stream);
}

void free_pinned(void* owner, std::byte* data, size_t) {
  auto& context = *static_cast<PrimaryContext*>(owner);
  const ContextScope scope(context);
  context.driver().cuMemFreeHost(data);  // waits for the device
}

CUresult allocate_pooled(PrimaryContext& context, CUdeviceptr& address, size_t bytes) {
  const CUresult result = context.driver().cuMemAllocAsync(&address, bytes, context.allocations());
  if (result != CUDA_SUCCESS) return result;
  const CUresult waited = context.driver().cuStreamSynchronize(context.allocations());
  if (waited != CUDA_SUCCESS) context.driver().cuMemFreeAsync(address, context.releases());
  return waited;
}

// An asynchronous copy of fewer valid bytes may touch all of its 16.
size_t whole_vectors(size_t bytes) { return bytes > SIZE_MAX - 15 ? bytes : round_up(bytes, 16); }

Error allocation_error(PrimaryContext& context, CUresult result, size_t bytes) {
  size_t free = 0, total = 0;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && context.driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS)
    return context.failure(result, fmt::format("allocating {} bytes ({} of {} are free)", bytes, free, total));
  return context.failure(result, fmt::format("allocating {} bytes", bytes));
}

// Of memory that the driver knows; nothing is set for other memory of the host.
struct MemoryInfo {
  unsigned type = 0;
  unsigned managed = 0;
  int ordinal = -1;
};

MemoryInfo info_of(const Driver& driver, const void* address) {
  MemoryInfo info;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&info.type, &info.managed, &info.ordinal};
  // Asked for several attributes, the driver takes an address that it does not know for no error.
  const CUresult result = driver.cuPointerGetAttributes(std::size(attributes), attributes, values, address_of(address));
  return result == CUDA_SUCCESS ? info : MemoryInfo();
}

}  // namespace

Result<DeviceMemory> allocate(const std::shared_ptr<PrimaryContext>& context, size_t bytes) {
  LATHE_TRY(context->usable());
  if (bytes == 0) return DeviceMemory();
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context));
  const size_t whole = whole_vectors(bytes);
  CUdeviceptr address = 0;
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  DeviceMemory::Free free = free_pooled;
  if (context->properties().memory_pools) result = allocate_pooled(*context, address, whole);
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    free = free_block;
    result = context->driver().cuMemAlloc(&address, whole);
  }
  if (result != CUDA_SUCCESS) return fail(allocation_error(*context, result, bytes));
  device_tally().add(bytes);
  return DeviceMemory(reinterpret_cast<std::byte*>(address), bytes, context, free);
}

Result<DeviceMemory> allocate(const std::shared_ptr<ContextSource>& from, size_t bytes) {
  PrimaryContext& context = *from->context;
  LATHE_TRY(context.usable());
  if (bytes == 0) return DeviceMemory();
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(context));
  void* const memory = from->source->allocate(whole_vectors(bytes), context.allocations());
  if (!memory)
    return fail(ErrorCode::out_of_memory, "the application's allocator has no {} bytes for cuda:{}", bytes,
                context.properties().ordinal);
  device_tally().add(bytes);
  DeviceMemory block(static_cast<std::byte*>(memory), bytes, from, free_to_source);
  LATHE_TRY(context.check(context.driver().cuStreamSynchronize(context.allocations()), "waiting for memory"));
  if (address_of(memory) % kAlignment != 0)
    return fail(
        ErrorCode::invalid_argument,
        "the application's allocator gave memory at {}, which is not aligned to the {} bytes that it was asked for",
        memory, kAlignment);
  if (!is_accessible(context, memory))
    return fail(ErrorCode::invalid_argument,
                "the application's allocator gave memory at {}, which cuda:{} cannot use: allocate it on that device",
                memory, context.properties().ordinal);
  return block;
}

Result<DeviceMemory> allocate_pinned(const std::shared_ptr<PrimaryContext>& context, size_t bytes) {
  LATHE_TRY(context->usable());
  if (bytes == 0) return DeviceMemory();
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context));
  void* address = nullptr;
  LATHE_TRY(context->check(context->driver().cuMemHostAlloc(&address, bytes, 0),
                           fmt::format("allocating {} bytes of the host's memory that do not move", bytes)));
  return DeviceMemory(static_cast<std::byte*>(address), bytes, context, free_pinned);
}

Result<> upload(void* to, const void* from, size_t bytes, Stream& stream) {
  if (bytes == 0) return stream.context().usable();
  PrimaryContext& context = stream.context();
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(context));
  const auto doing = [&] { return fmt::format("copying {} bytes to the device", bytes); };
  const CUresult result = context.driver().cuMemcpyHtoDAsync(address_of(to), from, bytes, stream.handle());
  if (result != CUDA_SUCCESS) return fail(context.failure(result, doing()));
  // The driver takes a copy of pageable memory, but reads pinned memory when the stream comes to it.
  if (info_of(context.driver(), from).type == 0) return {};
  const CUresult waited = context.driver().cuStreamSynchronize(stream.handle());
  if (waited != CUDA_SUCCESS) return fail(context.failure(waited, doing()));
  return {};
}

Result<> download(void* to, const void* from, size_t bytes, Stream& stream) {
  PrimaryContext& context = stream.context();
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(context));
  CUresult result = CUDA_SUCCESS;
  if (bytes > 0) result = context.driver().cuMemcpyDtoHAsync(to, address_of(from), bytes, stream.handle());
  if (result == CUDA_SUCCESS) result = context.driver().cuStreamSynchronize(stream.handle());
  if (result != CUDA_SUCCESS) return fail(context.failure(result, fmt::format("copying {} bytes to the host", bytes)));
  return {};
}

// The driver limits pitches; rows that are further apart go one by one.
Result<> copy(const RowsCopy& rows, Stream& stream) {
  if (rows.width == 0 || rows.rows == 0) return stream.context().usable();
  PrimaryContext& context = stream.context();
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(context));
  const bool together = rows.rows > 1 && std::max(rows.to_pitch, rows.from_pitch) <= INT32_MAX;
  CUresult result = CUDA_SUCCESS;
  if (together) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = address_of(rows.from);
    copy.dstDevice = address_of(rows.to);
    copy.srcPitch = rows.from_pitch;
    copy.dstPitch = rows.to_pitch;
    copy.WidthInBytes = rows.width;
    copy.Height = rows.rows;
    result = context.driver().cuMemcpy2DAsync(&copy, stream.handle());
  }
  for (size_t i = 0; !together && i < rows.rows && result == CUDA_SUCCESS; ++i)
    result = context.driver().cuMemcpyAsync(address_of(rows.to + i * rows.to_pitch),
                                            address_of(rows.from + i * rows.from_pitch), rows.width, stream.handle());
  if (result == CUDA_SUCCESS) return {};
  return fail(context.failure(result, fmt::format("copying {} bytes on the device", rows.width * rows.rows)));
}

bool is_accessible(PrimaryContext& context, const void* address) {
  const Result<ContextScope> scope = ContextScope::enter(context);
  if (!scope) return false;
  const MemoryInfo info = info_of(context.driver(), address);
  if (info.type != CU_MEMORYTYPE_DEVICE) return info.type != 0;
  return info.managed != 0 || info.ordinal == context.properties().ordinal;
}

bool is_readable_by_host(PrimaryContext& context, const void* address) {
  const Result<ContextScope> scope = ContextScope::enter(context);
  if (!scope) return true;
  return !is_device_memory(context.driver(), address);
}

bool is_device_memory(const Driver& driver, const void* address) {
  const MemoryInfo info = info_of(driver, address);
  return info.type == CU_MEMORYTYPE_DEVICE && info.managed == 0;
}

}  // namespace lathe::cuda
