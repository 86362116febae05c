// SPDX-License-Identifier: Apache-2.0
// A GPU as an application of TensorRT sees it: memory, streams, events, graphs. The CUDA driver is opened at run time
// (LATHE_CUDA_DRIVER, or libcuda.so.1), so that the program starts where there is none. Failing calls throw
// cli::Failure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"

namespace lathe::trtexec {

struct CudaCalls {
#define TRTEXEC_CUDA(name, symbol, need, parameters) int(*name) parameters = nullptr;
#include "trtexec/cuda_calls.def"
#undef TRTEXEC_CUDA
};

// Null where there is no driver, or it finds no device; then `why` says so.
const CudaCalls* cuda_calls(std::string& why);

void check_cuda(const CudaCalls& calls, int result, const char* doing);

// What a device says of itself.
struct GpuFacts {
  std::string name, uuid;  // "" where the driver does not tell
  int major = 0, minor = 0, multiprocessors = 0, shared_bytes = 0, bus_bits = 0;
  int clock_khz = 0, memory_clock_khz = 0, persisting_cache_bytes = 0;
  bool ecc = false;
  size_t memory_bytes = 0;
};
GpuFacts gpu_facts(const CudaCalls& calls, int ordinal);
int gpu_count(const CudaCalls& calls);

// The primary context of a device, current for as long as this lives. One thread.
class GpuContext {
 public:
  GpuContext(const CudaCalls& calls, int ordinal);
  ~GpuContext();
  GpuContext(const GpuContext&) = delete;
  GpuContext& operator=(const GpuContext&) = delete;
  const CudaCalls& calls() const { return calls_; }
  int ordinal() const { return ordinal_; }

 private:
  const CudaCalls& calls_;
  int ordinal_;
  int device_ = 0;
};

class GpuStream {
 public:
  explicit GpuStream(const CudaCalls& calls);
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;
  void* get() const { return stream_; }
  cudaStream_t cuda() const { return static_cast<cudaStream_t>(stream_); }
  void synchronize() const;
  void wait_for(void* event) const;

 private:
  const CudaCalls& calls_;
  void* stream_ = nullptr;
};

enum class GpuWaiting { spins, sleeps };

class GpuEvent {
 public:
  GpuEvent(const CudaCalls& calls, GpuWaiting waiting);
  ~GpuEvent();
  GpuEvent(const GpuEvent&) = delete;
  GpuEvent& operator=(const GpuEvent&) = delete;
  void* get() const { return event_; }
  void record(const GpuStream& stream) const;
  void wait() const;
  float milliseconds_since(const GpuEvent& start) const;

 private:
  const CudaCalls& calls_;
  GpuWaiting waiting_;
  void* event_ = nullptr;
};

// What a stream was given between begin() and end(), to be launched as often as wanted.
class GpuGraph {
 public:
  explicit GpuGraph(const CudaCalls& calls) : calls_(calls) {}
  ~GpuGraph();
  GpuGraph(const GpuGraph&) = delete;
  GpuGraph& operator=(const GpuGraph&) = delete;
  bool begin(const GpuStream& stream);  // false where it cannot be
  bool end(const GpuStream& stream);    // false where what came between cannot be captured
  bool launch(const GpuStream& stream) const;

 private:
  const CudaCalls& calls_;
  void* executable_ = nullptr;
};

// Memory of the device, managed memory, or memory of the host that copies reach directly. Freed in the context that was
// current.
enum class GpuMemoryKind { device, managed, host };
std::shared_ptr<void> gpu_memory(const CudaCalls& calls, GpuMemoryKind kind, size_t bytes);

}  // namespace lathe::trtexec
