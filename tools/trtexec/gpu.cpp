// SPDX-License-Identifier: Apache-2.0
#include "trtexec/gpu.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "cli/failure.h"

namespace lathe::trtexec {
namespace {

using cli::Failure;

// Attributes and flags of the driver's interface, by its numbers.
constexpr int kClockRate = 13, kMultiprocessors = 16, kEcc = 32, kMemoryClock = 36, kBusWidth = 37;
constexpr int kMajor = 75, kMinor = 76, kSharedPerMultiprocessor = 81, kPersistingCache = 108;
constexpr unsigned kNonBlocking = 1, kBlockingSync = 1, kGlobal = 1;
constexpr int kCaptureThreadLocal = 1;
constexpr int kNotReady = 600;

struct OpenedDriver {
  CudaCalls calls;
  bool usable = false;
  std::string why;
};

OpenedDriver open_cuda() {
  OpenedDriver driver;
  const char* named = std::getenv("LATHE_CUDA_DRIVER");
  const char* path = named && *named ? named : "libcuda.so.1";
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    driver.why = fmt::format("the CUDA driver cannot be loaded: {}", reason ? reason : path);
    return driver;
  }
#define TRTEXEC_CUDA(name, symbol, need, parameters)                                \
  driver.calls.name = reinterpret_cast<int(*) parameters>(dlsym(library, #symbol)); \
  if (!driver.calls.name && std::string_view(#need) == "required") driver.why = path + std::string(" lacks " #symbol);
#include "trtexec/cuda_calls.def"
#undef TRTEXEC_CUDA
  if (!driver.why.empty()) return driver;
  int count = 0;
  const int started = driver.calls.init(0);
  if (started != 0 || driver.calls.device_count(&count) != 0 || count == 0)
    driver.why = fmt::format("the CUDA driver finds no device (result {})", started);
  driver.usable = driver.why.empty();
  return driver;
}

std::string uuid_text(const unsigned char (&bytes)[16]) {
  std::string text = "GPU-";
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

}  // namespace

const CudaCalls* cuda_calls(std::string& why) {
  static const OpenedDriver driver = open_cuda();
  why = driver.why;
  return driver.usable ? &driver.calls : nullptr;
}

void check_cuda(const CudaCalls& calls, int result, const char* doing) {
  if (result == 0) return;
  const char* name = nullptr;
  calls.error_name(result, &name);
  throw Failure(fmt::format("Cuda failure: {} ({}) while {}", name ? name : "unknown", result, doing));
}

int gpu_count(const CudaCalls& calls) {
  int count = 0;
  check_cuda(calls, calls.device_count(&count), "counting devices");
  return count;
}

GpuFacts gpu_facts(const CudaCalls& calls, int ordinal) {
  int device = 0;
  check_cuda(calls, calls.device(&device, ordinal), "looking for the device");
  GpuFacts facts;
  char name[256] = "";
  check_cuda(calls, calls.device_name(name, sizeof(name), device), "asking for the device's name");
  facts.name = name;
  check_cuda(calls, calls.device_memory(&facts.memory_bytes, device), "asking for the device's memory");
  const auto attribute = [&](int number) {
    int value = 0;
    return calls.device_attribute(&value, number, device) == 0 ? value : 0;
  };
  facts.major = attribute(kMajor);
  facts.minor = attribute(kMinor);
  facts.multiprocessors = attribute(kMultiprocessors);
  facts.shared_bytes = attribute(kSharedPerMultiprocessor);
  facts.bus_bits = attribute(kBusWidth);
  facts.ecc = attribute(kEcc) != 0;
  facts.clock_khz = attribute(kClockRate);
  facts.memory_clock_khz = attribute(kMemoryClock);
  facts.persisting_cache_bytes = attribute(kPersistingCache);
  unsigned char uuid[16];
  if (calls.device_uuid && calls.device_uuid(uuid, device) == 0) facts.uuid = uuid_text(uuid);
  return facts;
}

GpuContext::GpuContext(const CudaCalls& calls, int ordinal) : calls_(calls), ordinal_(ordinal) {
  check_cuda(calls, calls.device(&device_, ordinal), "looking for the device");
  void* context = nullptr;
  check_cuda(calls, calls.retain(&context, device_), "opening the device");
  const int result = calls.push(context);
  if (result != 0) calls.release(device_);
  check_cuda(calls, result, "opening the device");
}

GpuContext::~GpuContext() {
  void* context = nullptr;
  calls_.pop(&context);
  calls_.release(device_);
}

GpuStream::GpuStream(const CudaCalls& calls) : calls_(calls) {
  check_cuda(calls, calls.create_stream(&stream_, kNonBlocking), "creating a stream");
}
GpuStream::~GpuStream() { calls_.destroy_stream(stream_); }
void GpuStream::synchronize() const { check_cuda(calls_, calls_.synchronize(stream_), "waiting for a stream"); }
void GpuStream::wait_for(void* event) const {
  check_cuda(calls_, calls_.wait_for(stream_, event, 0), "ordering two streams");
}

GpuEvent::GpuEvent(const CudaCalls& calls, GpuWaiting waiting) : calls_(calls), waiting_(waiting) {
  const unsigned flags = waiting == GpuWaiting::sleeps ? kBlockingSync : 0;
  check_cuda(calls, calls.create_event(&event_, flags), "creating an event");
}
GpuEvent::~GpuEvent() { calls_.destroy_event(event_); }
void GpuEvent::record(const GpuStream& stream) const {
  check_cuda(calls_, calls_.record(event_, stream.get()), "recording an event");
}
void GpuEvent::wait() const {
  if (waiting_ == GpuWaiting::spins && calls_.query) {
    int result = kNotReady;
    while (result == kNotReady) result = calls_.query(event_);
    check_cuda(calls_, result, "running the engine");
  }
  check_cuda(calls_, calls_.wait(event_), "running the engine");
}
float GpuEvent::milliseconds_since(const GpuEvent& start) const {
  float milliseconds = 0;
  check_cuda(calls_, calls_.elapsed(&milliseconds, start.event_, event_), "reading a time");
  return milliseconds;
}

GpuGraph::~GpuGraph() {
  if (executable_) calls_.destroy_executable(executable_);
}
bool GpuGraph::begin(const GpuStream& stream) {
  return calls_.instantiate && calls_.launch_graph && calls_.destroy_executable &&
         calls_.begin_capture(stream.get(), kCaptureThreadLocal) == 0;
}
bool GpuGraph::end(const GpuStream& stream) {
  void* graph = nullptr;
  if (calls_.end_capture(stream.get(), &graph) != 0 || !graph) return false;
  const int result = calls_.instantiate(&executable_, graph, 0);
  calls_.destroy_graph(graph);
  if (result != 0) executable_ = nullptr;
  return result == 0;
}
bool GpuGraph::launch(const GpuStream& stream) const { return calls_.launch_graph(executable_, stream.get()) == 0; }

std::shared_ptr<void> gpu_memory(const CudaCalls& calls, GpuMemoryKind kind, size_t bytes) {
  const size_t size = std::max<size_t>(bytes, 1);
  if (kind == GpuMemoryKind::host) {
    void* data = nullptr;
    if (!calls.allocate_host || !calls.free_host) throw Failure("the CUDA driver has no memory of the host to give");
    check_cuda(calls, calls.allocate_host(&data, size, 0), "allocating memory of the host");
    return {data, [&calls](void* address) { calls.free_host(address); }};
  }
  unsigned long long address = 0;
  if (kind == GpuMemoryKind::managed) {
    if (!calls.allocate_managed) throw Failure("--useManagedMemory: the CUDA driver has no managed memory");
    check_cuda(calls, calls.allocate_managed(&address, size, kGlobal), "allocating managed memory");
  } else {
    check_cuda(calls, calls.allocate(&address, size), "allocating memory of the device");
  }
  return {reinterpret_cast<void*>(address),
          [&calls](void* data) { calls.free(reinterpret_cast<unsigned long long>(data)); }};
}

}  // namespace lathe::trtexec
