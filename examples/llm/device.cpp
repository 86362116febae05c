// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <vector>

namespace {

class Host final : public Device {
 public:
  void* allocate(size_t bytes) override {
    blocks_.emplace_back(new (std::nothrow) std::byte[bytes]());
    return blocks_.back().get();
  }
  bool upload(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return true;
  }
  bool download(void* to, const void* from, size_t bytes) override { return upload(to, from, bytes); }
  cudaStream_t stream() const override { return nullptr; }  // an engine for CPUs is done when enqueueV3() returns
  bool repeat(size_t, const std::function<bool()>& enqueue) override { return enqueue(); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

// The functions of the driver that are needed. Each gives 0 when all is well.
struct Driver {
  using Handle = void*;
  using Address = uintptr_t;
  int (*init)(unsigned);
  int (*retain)(Handle* context, int device);
  int (*push)(Handle context);
  int (*allocate)(Address*, size_t);
  int (*release)(Address);
  int (*upload)(Address, const void*, size_t, Handle stream);
  int (*download)(void*, Address, size_t, Handle stream);
  int (*make_stream)(Handle*, unsigned flags);
  int (*wait)(Handle stream);
  int (*begin_capture)(Handle stream, int mode);
  int (*end_capture)(Handle stream, Handle* graph);
  int (*instantiate)(Handle* executable, Handle graph, unsigned long long flags);
  int (*launch)(Handle executable, Handle stream);

  bool open() {
    const char* path = std::getenv("LATHE_CUDA_DRIVER");
    void* library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
    const auto find = [&](auto& function, const char* name) {
      function = library ? reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name)) : nullptr;
      return function != nullptr;
    };
    return find(init, "cuInit") && find(retain, "cuDevicePrimaryCtxRetain") && find(push, "cuCtxPushCurrent_v2") &&
           find(allocate, "cuMemAlloc_v2") && find(release, "cuMemFree_v2") && find(upload, "cuMemcpyHtoDAsync_v2") &&
           find(download, "cuMemcpyDtoHAsync_v2") && find(make_stream, "cuStreamCreate") &&
           find(wait, "cuStreamSynchronize") && find(begin_capture, "cuStreamBeginCapture_v2") &&
           find(end_capture, "cuStreamEndCapture") && find(instantiate, "cuGraphInstantiateWithFlags") &&
           find(launch, "cuGraphLaunch");
  }
};

class Gpu final : public Device {
 public:
  ~Gpu() override {
    for (const Driver::Address block : blocks_) driver_.release(block);
  }
  bool open() {
    constexpr unsigned kNonBlocking = 1;
    Driver::Handle context = nullptr;
    return driver_.open() && !driver_.init(0) && !driver_.retain(&context, 0) && !driver_.push(context) &&
           !driver_.make_stream(&stream_, kNonBlocking);
  }
  void* allocate(size_t bytes) override {
    Driver::Address block = 0;
    if (driver_.allocate(&block, bytes)) return nullptr;
    blocks_.push_back(block);
    return upload(pointer(block), std::vector<std::byte>(bytes).data(), bytes) ? pointer(block) : nullptr;
  }
  bool upload(void* to, const void* from, size_t bytes) override {
    return !driver_.upload(address(to), from, bytes, stream_) && !driver_.wait(stream_);
  }
  bool download(void* to, const void* from, size_t bytes) override {
    return !driver_.download(to, address(from), bytes, stream_) && !driver_.wait(stream_);
  }
  cudaStream_t stream() const override { return static_cast<cudaStream_t>(stream_); }
  bool repeat(size_t number, const std::function<bool()>& enqueue) override {
    Driver::Handle& executable = executables_[number];
    if (!executable && !capture(enqueue, executable)) return false;
    return !driver_.launch(executable, stream_);
  }

 private:
  static Driver::Address address(const void* memory) { return reinterpret_cast<Driver::Address>(memory); }
  static void* pointer(Driver::Address memory) { return reinterpret_cast<void*>(memory); }

  bool capture(const std::function<bool()>& enqueue, Driver::Handle& executable) {
    constexpr int kThreadLocal = 1;
    Driver::Handle graph = nullptr;
    if (driver_.begin_capture(stream_, kThreadLocal)) return false;
    const bool enqueued = enqueue();
    return !driver_.end_capture(stream_, &graph) && enqueued && !driver_.instantiate(&executable, graph, 0);
  }

  Driver driver_;
  Driver::Handle stream_ = nullptr;
  std::map<size_t, Driver::Handle> executables_;
  std::vector<Driver::Address> blocks_;
};

}  // namespace

std::unique_ptr<Device> make_host() { return std::make_unique<Host>(); }

std::unique_ptr<Device> make_gpu() {
  auto gpu = std::make_unique<Gpu>();
  if (gpu->open()) return gpu;
  std::fprintf(stderr, "no GPU: the CUDA driver is not there or does not start; --target=cpu runs on the processor\n");
  return nullptr;
}
