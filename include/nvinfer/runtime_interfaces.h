// SPDX-License-Identifier: Apache-2.0
// Interfaces that the application implements and the library calls. Include NvInferRuntime.h instead.
#ifndef NVINFER_RUNTIME_INTERFACES_H
#define NVINFER_RUNTIME_INTERFACES_H

#include "NvInferImpl.h"
#include "NvInferRuntimeCommon.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Base of every object that the library owns or makes: used through pointers, never copied.
class INoCopy {
 protected:
  INoCopy() = default;
  virtual ~INoCopy() = default;
  INoCopy(const INoCopy& other) = delete;
  INoCopy& operator=(const INoCopy& other) = delete;
  INoCopy(INoCopy&& other) = delete;
  INoCopy& operator=(INoCopy&& other) = delete;
};

// `count` elements of `type` at `values`. Not owned: the memory must stay valid until the build is done. Empty weights
// have count 0 and values nullptr.
class Weights {
 public:
  DataType type;
  const void* values;
  int64_t count;
};

enum class TensorLocation : int32_t {
  kDEVICE = 0,
  kHOST = 1,
};
template <>
struct impl::EnumMaxImpl<TensorLocation> {
  static constexpr int32_t kVALUE = 2;
};

// Layout of a tensor in memory. kCHWx: x channels interleaved; kHWCx: channels innermost, padded to a multiple of x.
enum class TensorFormat : int32_t {
  kLINEAR = 0,  // row-major, any type
  kCHW2 = 1,
  kHWC8 = 2,
  kCHW4 = 3,
  kCHW16 = 4,
  kCHW32 = 5,
  kDHWC8 = 6,
  kCDHW32 = 7,
  kHWC = 8,
  kDLA_LINEAR = 9,
  kDLA_HWC4 = 10,
  kHWC16 = 11,
  kDHWC = 12,
};
template <>
struct impl::EnumMaxImpl<TensorFormat> {
  static constexpr int32_t kVALUE = 13;
};

enum class AllocatorFlag : int32_t {
  kRESIZABLE = 0,  // the block may be passed to reallocate()
};
template <>
struct impl::EnumMaxImpl<AllocatorFlag> {
  static constexpr int32_t kVALUE = 1;
};
using AllocatorFlags = uint32_t;

enum class SeekPosition : int32_t {
  kSET = 0,
  kCUR = 1,
  kEND = 2,
};

namespace v_1_0 {

// Gives all device memory that a builder or runtime, and what it makes, uses. Thread-safe.
class IGpuAllocator : public IVersionedInterface {
 public:
  // nullptr when size is 0 or memory is short. `alignment` is 0 or a power of two.
  TRT_DEPRECATED virtual void* allocate(const uint64_t size, const uint64_t alignment,
                                        const AllocatorFlags flags) noexcept = 0;

  ~IGpuAllocator() override = default;
  IGpuAllocator() = default;

  // Grows a kRESIZABLE block, contents kept. nullptr means unsupported; the old block stays valid then.
  virtual void* reallocate(void* const, uint64_t, uint64_t) noexcept { return nullptr; }

  // `memory` may be nullptr. False when it did not come from this allocator.
  TRT_DEPRECATED virtual bool deallocate(void* const memory) noexcept = 0;

  // Stream-ordered forms; the defaults fall back to the two above.
  virtual void* allocateAsync(const uint64_t size, const uint64_t alignment, const AllocatorFlags flags,
                              cudaStream_t) noexcept {
    return allocate(size, alignment, flags);
  }
  virtual bool deallocateAsync(void* const memory, cudaStream_t) noexcept { return deallocate(memory); }

  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IGpuAllocator", 1, 0}; }

 protected:
  IGpuAllocator(const IGpuAllocator&) = default;
  IGpuAllocator(IGpuAllocator&&) = default;
  IGpuAllocator& operator=(const IGpuAllocator&) & = default;
  IGpuAllocator& operator=(IGpuAllocator&&) & = default;
};

// An allocator whose primary functions are the stream-ordered ones.
class IGpuAsyncAllocator : public IGpuAllocator {
 public:
  IGpuAsyncAllocator() = default;
  ~IGpuAsyncAllocator() override = default;

  void* allocateAsync(const uint64_t size, const uint64_t alignment, const AllocatorFlags flags,
                      cudaStream_t) noexcept override = 0;
  bool deallocateAsync(void* const memory, cudaStream_t) noexcept override = 0;

  TRT_DEPRECATED void* allocate(const uint64_t size, const uint64_t alignment,
                                const AllocatorFlags flags) noexcept override {
    return allocateAsync(size, alignment, flags, nullptr);
  }
  TRT_DEPRECATED bool deallocate(void* const memory) noexcept override { return deallocateAsync(memory, nullptr); }

  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IGpuAllocator", 1, 0}; }
};

// Reads a plan sequentially. Deprecated: IStreamReaderV2.
class TRT_DEPRECATED IStreamReader : public IVersionedInterface {
 public:
  ~IStreamReader() override = default;
  IStreamReader() = default;

  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IStreamReader", 1, 0}; }

  // Bytes read; 0 at the end, negative on error.
  virtual int64_t read(void* destination, int64_t nbBytes) = 0;

 protected:
  IStreamReader(const IStreamReader&) = default;
  IStreamReader(IStreamReader&&) = default;
  IStreamReader& operator=(const IStreamReader&) & = default;
  IStreamReader& operator=(IStreamReader&&) & = default;
};

// Takes a plan piece by piece.
class IStreamWriter : public IVersionedInterface {
 public:
  ~IStreamWriter() override = default;
  IStreamWriter() = default;

  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IStreamWriter", 1, 0}; }

  // Bytes written; fewer than nbBytes makes the library give up. `data` is host memory.
  virtual int64_t write(const void* data, int64_t nbBytes) = 0;

 protected:
  IStreamWriter(const IStreamWriter&) = default;
  IStreamWriter(IStreamWriter&&) = default;
  IStreamWriter& operator=(const IStreamWriter&) & = default;
  IStreamWriter& operator=(IStreamWriter&&) & = default;
};

// Reads a plan, with seeking, into host or device memory.
class IStreamReaderV2 : public IVersionedInterface {
 public:
  ~IStreamReaderV2() override = default;
  IStreamReaderV2() = default;

  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IStreamReaderV2", 1, 0}; }

  // Bytes read; 0 at the end, negative on error. May complete asynchronously on `stream` for device memory.
  virtual int64_t read(void* destination, int64_t nbBytes, cudaStream_t stream) noexcept = 0;
  virtual bool seek(int64_t offset, SeekPosition where) noexcept = 0;

 protected:
  IStreamReaderV2(const IStreamReaderV2&) = default;
  IStreamReaderV2(IStreamReaderV2&&) = default;
  IStreamReaderV2& operator=(const IStreamReaderV2&) & = default;
  IStreamReaderV2& operator=(IStreamReaderV2&&) & = default;
};

// Receives the time of each engine layer, once per inference.
#if NV_TENSORRT_MAJOR >= 11
class IProfiler : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IProfiler", 1, 0}; }
#else
class IProfiler {
 public:
#endif

  virtual void reportLayerTime(const char* layerName, float ms) noexcept = 0;
  virtual ~IProfiler() noexcept = default;
};

// Gives memory for one output whose size is known only after it is computed.
class IOutputAllocator : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IOutputAllocator", 1, 0}; }

  TRT_DEPRECATED virtual void* reallocateOutput(const char*, void*, uint64_t, uint64_t) noexcept { return nullptr; }

  // Memory of at least `size` > 0 bytes; may be currentMemory if that is large enough. nullptr fails the enqueue.
  virtual void* reallocateOutputAsync(const char* tensorName, void* currentMemory, uint64_t size, uint64_t alignment,
                                      cudaStream_t) {
    return reallocateOutput(tensorName, currentMemory, size, alignment);
  }

  // Called once per enqueue, after the memory was given, with the output's final shape.
  virtual void notifyShape(const char* tensorName, const Dims& dims) noexcept = 0;
};

// Sees tensors that were marked for debugging, as they are computed.
class IDebugListener : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IDebugListener", 1, 0}; }

  // The data at `addr` is valid during the call only. False reports a failure.
  virtual bool processDebugTensor(const void* addr, TensorLocation location, DataType type, const Dims& shape,
                                  const char* name, cudaStream_t stream) = 0;

  ~IDebugListener() override = default;
};

}  // namespace v_1_0

using IGpuAllocator = v_1_0::IGpuAllocator;
using IGpuAsyncAllocator = v_1_0::IGpuAsyncAllocator;
using IStreamReader = v_1_0::IStreamReader;
using IStreamWriter = v_1_0::IStreamWriter;
using IStreamReaderV2 = v_1_0::IStreamReaderV2;
using IProfiler = v_1_0::IProfiler;
using IOutputAllocator = v_1_0::IOutputAllocator;
using IDebugListener = v_1_0::IDebugListener;

template <>
struct impl::EnumMaxImpl<ILogger::Severity> {
  static constexpr int32_t kVALUE = 5;
};

#if NV_TENSORRT_MAJOR >= 11
namespace v_1_0 {
#endif

// Owned by the library; a plugin library gets it through its exported setLoggerFinder() and asks it for the logger of
// the calling thread.
#if NV_TENSORRT_MAJOR >= 11
class ILoggerFinder : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"ILoggerFinder", 1, 0}; }
#else
class ILoggerFinder {
 public:
#endif

  virtual ILogger* findLogger() = 0;

 protected:
  virtual ~ILoggerFinder() = default;
};

#if NV_TENSORRT_MAJOR >= 11
}  // namespace v_1_0

using ILoggerFinder = v_1_0::ILoggerFinder;
#endif

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_RUNTIME_INTERFACES_H
