// SPDX-License-Identifier: Apache-2.0
// What the stand-in driver knows: devices, contexts, objects, and which calls are to fail.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda/cuda_types.h"
#include "fake_cuda/driver/control.h"

namespace fake_cuda {

using namespace lathe::cuda;  // NOLINT: the driver's own names

struct Context {
  int ordinal = 0;
  int retained = 0;
  CUresult fault = CUDA_SUCCESS;  // that has ended it
};

struct DeviceConfig {
  std::string name = "Fake H200";
  int major = 9, minor = 0;
  size_t memory_bytes = size_t{16} << 30;
  size_t used_elsewhere = 0;
  bool pools = true;
  std::map<int, int> attributes;  // that differ from those of the H200, by CUdevice_attribute
  std::unique_ptr<Context> context;
};

struct Allocation {
  size_t size = 0;
  Context* context = nullptr;
  bool pooled = false;
};

struct HostRange {
  size_t size = 0;
  unsigned type = 0;
  bool managed = false;
  int ordinal = 0;
};

struct Function;
struct Module {
  Module() = default;
  Module(const Module&) = delete;
  ~Module();
  Context* context = nullptr;
  void* library = nullptr;  // of the host
  int file = -1;            // it lies in; open, because loaded libraries are known by its number
  std::string image;        // of cubins and PTX
  bool text = false;
  std::map<std::string, std::unique_ptr<Function>> functions;
};
struct Function {
  Module* module = nullptr;
  std::string name;
  void* code = nullptr;  // in the module's library
  int parameters = -1;
  int maps = 0;  // the first of them, which are tensor maps
  int max_threads = 1024;
  int static_shared_bytes = 0;
  int architecture = 90;  // that its PTX was for
  int max_shared_bytes = 48 << 10;
  bool large_clusters = false;
};

// A vector clock: of each stream, by its number, how many operations have surely ended.
using Clock = std::map<uint64_t, uint64_t>;
void merge(Clock& into, const Clock& other);
uint64_t new_stream_number();

// When an operation runs: which one of its stream it is, and what has ended before it.
struct Stamp {
  uint64_t stream = 0, position = 0;
  Clock before;
};

// Something that a stream does; graphs hold them.
struct Operation {
  const void* kind = nullptr;  // graphs update each other only where these are equal
  std::function<CUresult()> run;
  Stamp stamp = {};  // of a graph: by the streams that were captured
};
struct Graph {
  Context* context = nullptr;
  std::vector<Operation> operations;
  std::map<uint64_t, uint64_t> numbers;  // of an executable: those that stand for the captured streams
  uint64_t rounds = 0;                   // that it has run
  bool is_open = false;                  // it is being captured
};
struct Stream {
  Context* context = nullptr;
  uint64_t number = new_stream_number();
  Clock clock;                     // what has ended when its next operation begins
  std::shared_ptr<Graph> capture;  // several streams' may be the same
  bool began_capture = false;      // or was drawn into it by an event
  Clock outside;                   // its clock from before the capture
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id capturer;
  bool invalidated = false;
};
struct Event {
  Context* context = nullptr;
  bool recorded = false;
  double microseconds = 0;
  Clock clock;
  const Stream* captured = nullptr;  // of whose capture it is
  std::shared_ptr<Graph> capture;
};

// Handles of one kind: addresses that the driver gave out and that were not given back.
template <class T>
class Objects {
 public:
  template <class Handle>
  void add(std::unique_ptr<T> object, Handle* handle) {
    T* address = object.get();
    live_[address] = std::move(object);
    *handle = reinterpret_cast<Handle>(address);
  }
  template <class Handle>
  T* find(Handle handle) {
    const auto found = live_.find(reinterpret_cast<const void*>(handle));
    return found == live_.end() ? nullptr : found->second.get();
  }
  void remove(T* object) { live_.erase(object); }
  void remove_of(const Context* context) {
    std::erase_if(live_, [&](const auto& entry) { return entry.second->context == context; });
  }
  size_t size() const { return live_.size(); }
  auto begin() { return live_.begin(); }
  auto end() { return live_.end(); }

 private:
  std::map<const void*, std::unique_ptr<T>> live_;
};

// What is linked: the last image that was added, of which there is one.
struct Link {
  Context* context = nullptr;
  std::string image;
};

struct Failure {
  std::string function;  // empty: any
  size_t countdown = 0;
  CUresult code = CUDA_SUCCESS;
  bool sticky = false;
};

struct State {
  size_t cache_aside = 0;             // of the L2 cache
  std::vector<size_t> cache_windows;  // bytes of those that streams were given

  std::recursive_mutex mutex;
  int driver_version = 13000;
  bool initialized = false;
  std::vector<DeviceConfig> devices;
  std::map<CUdeviceptr, Allocation> memory;
  std::map<uintptr_t, HostRange> host;
  Objects<Stream> streams;
  Objects<Event> events;
  Objects<Graph> graphs;
  Objects<Graph> executables;
  Objects<Module> modules;
  Objects<Link> links;
  std::vector<Failure> failures;
  size_t failed = 0;
  double microseconds = 0;  // that pass with work alone, so that tests see the same each time
  std::vector<const char*> calls;
  std::map<std::string, std::pair<fake_cuda_kernel, void*>> kernels;
  std::deque<fake_cuda_launch> launches;
  std::deque<Stamp> stamps;    // of the launches
  size_t unknown_streams = 0;  // calls with handles of streams that are none, or none any more
};

State& state();
std::vector<Context*>& context_stack();  // of this thread
CUstreamCaptureMode& capture_mode();     // of this thread

// How a call begins: counts it, and tells whether it is to fail.
struct Entry {
  std::unique_lock<std::recursive_mutex> lock;
  CUresult result = CUDA_SUCCESS;
};
// While it lives, this thread is in a call: fake_cuda_inside().
struct Inside {
  Inside() { ++depth(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { --depth(); }
  static int& depth();
};
enum class Needs { nothing, context };
Entry enter(const char* symbol, Needs needs);
// For calls that CUDA forbids while streams are captured; spoils the captures that it concerns.
CUresult check_capture();

size_t allocated_bytes(const Context* context);
void destroy_context(DeviceConfig& device);
// Runs an operation; the clock goes on.
CUresult run(const Operation& operation, const Stamp& stamp);
Stamp& current_stamp();  // of what this thread runs
// The stamp of an operation that the stream is given now.
Stamp next_stamp(Stream& stream);
// Gives the operation to a stream: captured, or done now.
CUresult submit(CUstream stream, Operation operation, Entry& entry);
Stream* default_stream(Context* context);
Stream* find_stream(CUstream handle);

}  // namespace fake_cuda

// Every function of the interface, with the types that the library under test calls it by.
namespace lathe::cuda {
#define LATHE_DRIVER_FUNCTION(name, symbol, need, parameters) \
  extern "C" __attribute__((visibility("default"))) CUresult symbol parameters;
#include "device/cuda/driver.def"
#undef LATHE_DRIVER_FUNCTION
}  // namespace lathe::cuda

// The beginning of each function. FAKE_ENTER returns the failure that was asked for; FAKE_ENTER_RELEASE goes on all the
// same, for calls that give something back.
#define FAKE_ENTER(needs)                                    \
  const fake_cuda::Inside inside;                            \
  auto entry = fake_cuda::enter(__func__, fake_cuda::needs); \
  if (entry.result != CUDA_SUCCESS) return entry.result
#define FAKE_ENTER_RELEASE(needs) \
  const fake_cuda::Inside inside; \
  auto entry = fake_cuda::enter(__func__, fake_cuda::needs)
