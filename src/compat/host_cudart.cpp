// SPDX-License-Identifier: Apache-2.0
// libcudart.so on the host's memory: what programs for TensorRT call of CUDA's runtime around an engine, so that they
// run engines for CPUs where there is no GPU. All work is done when a function returns, so streams and events have
// nothing to wait for; an event is the time at which it was recorded. There is no device: cudaGetDeviceCount() says so.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#define LATHE_CUDART extern "C" __attribute__((visibility("default")))

namespace {

// Numbers of cudaError_t.
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr size_t kAlignment = 256;  // as cudaMalloc()'s

thread_local int last_error = kSuccess;

int done(int error) {
  if (error != kSuccess) last_error = error;
  return error;
}

int allocate(void** memory, size_t size) {
  if (memory == nullptr) return done(kInvalidValue);
  *memory = nullptr;
  if (size == 0) return kSuccess;
  if (size > SIZE_MAX - kAlignment) return done(kOutOfMemory);
  *memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  return done(*memory != nullptr ? kSuccess : kOutOfMemory);
}

int release(void* memory) {
  std::free(memory);
  return kSuccess;
}

int copy(void* to, const void* from, size_t size) {
  if (size > 0 && (to == nullptr || from == nullptr)) return done(kInvalidValue);
  if (size > 0) std::memmove(to, from, size);
  return kSuccess;
}

int fill(void* memory, int value, size_t size) {
  if (size > 0 && memory == nullptr) return done(kInvalidValue);
  if (size > 0) std::memset(memory, value, size);
  return kSuccess;
}

// Streams and events.
struct Handle {
  std::chrono::steady_clock::time_point time;
};

int create(Handle** handle) {
  if (handle == nullptr) return done(kInvalidValue);
  *handle = new (std::nothrow) Handle;
  return done(*handle != nullptr ? kSuccess : kOutOfMemory);
}

int destroy(Handle* handle) {
  delete handle;
  return kSuccess;
}

}  // namespace

LATHE_CUDART int cudaMalloc(void** memory, size_t size) { return allocate(memory, size); }
LATHE_CUDART int cudaMallocAsync(void** memory, size_t size, Handle*) { return allocate(memory, size); }
LATHE_CUDART int cudaMallocHost(void** memory, size_t size) { return allocate(memory, size); }
LATHE_CUDART int cudaMallocManaged(void** memory, size_t size, unsigned) { return allocate(memory, size); }
LATHE_CUDART int cudaHostAlloc(void** memory, size_t size, unsigned) { return allocate(memory, size); }
LATHE_CUDART int cudaFree(void* memory) { return release(memory); }
LATHE_CUDART int cudaFreeAsync(void* memory, Handle*) { return release(memory); }
LATHE_CUDART int cudaFreeHost(void* memory) { return release(memory); }
LATHE_CUDART int cudaMemcpy(void* to, const void* from, size_t size, int) { return copy(to, from, size); }
LATHE_CUDART int cudaMemcpyAsync(void* to, const void* from, size_t size, int, Handle*) { return copy(to, from, size); }
LATHE_CUDART int cudaMemset(void* memory, int value, size_t size) { return fill(memory, value, size); }
LATHE_CUDART int cudaMemsetAsync(void* memory, int value, size_t size, Handle*) { return fill(memory, value, size); }

LATHE_CUDART int cudaStreamCreate(Handle** stream) { return create(stream); }
LATHE_CUDART int cudaStreamCreateWithFlags(Handle** stream, unsigned) { return create(stream); }
LATHE_CUDART int cudaStreamCreateWithPriority(Handle** stream, unsigned, int) { return create(stream); }
LATHE_CUDART int cudaStreamDestroy(Handle* stream) { return destroy(stream); }
LATHE_CUDART int cudaStreamSynchronize(Handle*) { return kSuccess; }
LATHE_CUDART int cudaStreamQuery(Handle*) { return kSuccess; }
LATHE_CUDART int cudaStreamWaitEvent(Handle*, Handle*, unsigned) { return kSuccess; }
LATHE_CUDART int cudaDeviceSynchronize() { return kSuccess; }

LATHE_CUDART int cudaEventCreate(Handle** event) { return create(event); }
LATHE_CUDART int cudaEventCreateWithFlags(Handle** event, unsigned) { return create(event); }
LATHE_CUDART int cudaEventDestroy(Handle* event) { return destroy(event); }
LATHE_CUDART int cudaEventSynchronize(Handle*) { return kSuccess; }
LATHE_CUDART int cudaEventQuery(Handle*) { return kSuccess; }
LATHE_CUDART int cudaEventRecord(Handle* event, Handle*) {
  if (event == nullptr) return done(kInvalidValue);
  event->time = std::chrono::steady_clock::now();
  return kSuccess;
}
LATHE_CUDART int cudaEventElapsedTime(float* milliseconds, Handle* begin, Handle* end) {
  if (milliseconds == nullptr || begin == nullptr || end == nullptr) return done(kInvalidValue);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return kSuccess;
}

LATHE_CUDART int cudaGetDeviceCount(int* count) {
  if (count == nullptr) return done(kInvalidValue);
  *count = 0;
  return done(kNoDevice);
}
LATHE_CUDART int cudaPeekAtLastError() { return last_error; }
LATHE_CUDART int cudaGetLastError() {
  const int error = last_error;
  last_error = kSuccess;
  return error;
}
LATHE_CUDART const char* cudaGetErrorString(int error) {
  switch (error) {
    case kSuccess:
      return "no error";
    case kInvalidValue:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kNoDevice:
      return "no CUDA-capable device: this runtime works on the host's memory";
    default:
      return "unrecognized error code";
  }
}
