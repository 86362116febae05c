// SPDX-License-Identifier: Apache-2.0
// A device: memory, queues of work, kernels. Thread-safe. The runtime, the tuner and the builder know devices through
// this interface alone.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device_code.h"
#include "device/kernel.h"
#include "device/target.h"

namespace lathe {

// Memory of a device, freed with the object.
class DeviceMemory {
 public:
  using Free = void (*)(void* owner, std::byte* data, size_t size);
  DeviceMemory() = default;
  // `keeps` lives as long as the memory; `free` gets its address.
  DeviceMemory(std::byte* data, size_t size, std::shared_ptr<void> keeps, Free free)
      : data_(data), size_(size), keeps_(std::move(keeps)), free_(free) {}
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceMemory() {
    if (data_) free_(keeps_.get(), data_, size_);
  }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(keeps_, other.keeps_);
    std::swap(free_, other.free_);
  }
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<void> keeps_;
  Free free_ = nullptr;
};

// Rows of `width` bytes, each so many bytes behind the one before; of one row the pitches mean nothing.
struct RowsCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  size_t width = 0;
  size_t rows = 1;
  size_t to_pitch = 0, from_pitch = 0;

  // Where the device's memory is the host's.
  void run() const {
    for (size_t i = 0; i < rows; ++i) std::memcpy(to + i * to_pitch, from + i * from_pitch, width);
  }
};

// Work that was captured once and is replayed without the host's cost of each launch (a CUDA graph).
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual Result<> replay(Queue& queue) = 0;
  // Takes up the work anew, at less cost than a new capture where the device can.
  virtual Result<> update(const std::function<Result<>(Queue&)>& work) = 0;
  // The same in two parts, of which the second takes longer and may be another thread's; nothing else is done with the
  // graph between them.
  virtual Result<> record(const std::function<Result<>(Queue&)>& work) { return update(work); }
  virtual Result<> make_ready() { return {}; }
};

// Memory that the application hands out in place of a device's own. Thread-safe.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Of the device that is current to the thread: 256-byte aligned, and usable behind the work of `stream`, the
  // device's. Null = there is none.
  virtual void* allocate(size_t bytes, void* stream) = 0;
  virtual void free(void* memory, void* stream) = 0;  // behind the work of `stream`
};

// Bytes of a device's memory, and of them those that are in use, by whomever.
struct MemoryUse {
  size_t total = 0;
  size_t used = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;  // "cpu", "cuda:0"
  virtual std::string target() const = 0;     // what plans for it are tuned for: "cpu-x86_64-avx512", "cuda-sm_90"
  // Itself, for building plans: target() is its name.
  virtual Target describe() const = 0;
  virtual std::string timing_key() const = 0;                        // what timings depend on besides the problem
  virtual Result<> check_target(std::string_view target) const = 0;  // whether plans for `target` run here
  // Whether its memory is the host's, and enqueue() returns when the work is done.
  virtual bool is_host() const = 0;
  virtual int threads() const { return 1; }  // that queues work with (CPU)

  // Null where its memory is the host's, or it does not tell.
  virtual std::optional<MemoryUse> memory_use() const { return std::nullopt; }

  // The most of its cache that can be set aside for data that is used again; 0 = it has no such cache.
  virtual size_t most_cache_aside() const { return 0; }
  virtual Result<> set_aside_cache(size_t /*bytes*/) { return {}; }

  virtual Result<DeviceMemory> allocate(size_t bytes) = 0;  // 256-byte aligned; 0 gives an empty block
  // The same device with blocks, resident ones too, from `source`. Null where memory is the host's, which is its own.
  virtual std::shared_ptr<Device> allocating_from(std::shared_ptr<MemorySource> /*source*/) { return nullptr; }

  virtual Result<std::unique_ptr<Queue>> make_queue() = 0;
  // A queue on the caller's stream (CUDA: null is the default stream), which must outlive it. CPU: as make_queue().
  virtual Result<std::unique_ptr<Queue>> make_stream_queue(void* stream) = 0;
  // Ordered with the queue's work. download() is complete on return; upload() has read `from` on return.
  virtual Result<> upload(void* to, const void* from, size_t bytes, Queue& queue) = 0;
  virtual Result<> download(void* to, const void* from, size_t bytes, Queue& queue) = 0;
  // Within the device's memory: waits for nothing, and is captured like kernels. The rows do not overlap.
  virtual Result<> copy(const RowsCopy& rows, Queue& queue) = 0;
  // What the queue does next comes behind all work that the device has now, of whichever queue.
  virtual Result<> follow_all(Queue& /*queue*/) { return {}; }
  virtual Result<> wait(Queue& queue) = 0;  // until its work is done; reports what failed in it
  // Whether kernels can read and write at this address (of the application).
  virtual bool is_accessible(const void* address) const = 0;
  // Whether the host can read there.
  virtual bool is_readable_by_host(const void* /*address*/) const { return true; }

  virtual Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) = 0;
  // Code for this device of an image for others (choose_image()), which may take seconds.
  virtual Result<std::vector<std::byte>> compile(const CodeImage& /*image*/) {
    return fail(ErrorCode::plan_target, "{} compiles no device code", name());
  }
  // Code of the source of a launch, in which the numbers that it is given are known: they are those of its arguments
  // that are numbers, in order. It is launched as before. Compiled in a process of its own; fails with invalid_state,
  // nvrtc_missing or nvrtc_unsuitable where there is none that could.
  virtual Result<std::vector<std::byte>> specialize(const CodeImage& /*source*/,
                                                    std::span<const SourceFile> /*headers*/, const Launch& /*launch*/,
                                                    std::span<const int64_t> /*numbers*/) {
    return fail(ErrorCode::plan_target, "{} compiles no device code", name());
  }
  // Weights where kernels read them: the same bytes are made resident once per device. `owner` keeps `bytes` alive.
  virtual Result<std::shared_ptr<const std::byte>> make_resident(std::span<const std::byte> bytes,
                                                                 std::shared_ptr<const void> owner) = 0;
  // Null when this device gains nothing by captured graphs. `work` enqueues on the queue it is given.
  virtual Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>& work) = 0;
  // The same without CapturedGraph::make_ready(), which is due before the graph is replayed.
  virtual Result<std::unique_ptr<CapturedGraph>> record(const std::function<Result<>(Queue&)>& work) {
    return capture(work);
  }
  // Microseconds of `work` on the device, measured `repeats` times on a warm queue: each one's time.
  virtual Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) = 0;
  // The same of a graph that this device captured, as it is: nothing is made that runs would wait for.
  virtual Result<std::vector<double>> time_replays(Queue& /*queue*/, CapturedGraph& /*graph*/, int /*repeats*/) {
    return fail(ErrorCode::internal, "{} has no graphs", name());
  }
  // What the application's code queues work on (CUDA: a stream); null where the device is the host.
  virtual void* native_stream(Queue& /*queue*/) const { return nullptr; }
};

// Device code from source text. Thread-safe.
class Compiler {
 public:
  virtual ~Compiler() = default;
  // The module's bytes. Refuses code that spills registers, saying so.
  virtual Result<std::vector<std::byte>> compile(std::string_view source) = 0;
  // What the source includes, and what that does; their bytes live as long as the library.
  virtual std::vector<SourceFile> headers_of(std::string_view /*source*/) const { return {}; }
};

}  // namespace lathe
