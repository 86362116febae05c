// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/driver/state.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace fake_cuda {
namespace {

// The failure that this call was to have, if any.
CUresult take_failure(State& known, const char* symbol, bool& sticky) {
  CUresult result = CUDA_SUCCESS;
  for (Failure& failure : known.failures) {
    if (failure.countdown == 0 || (!failure.function.empty() && failure.function != symbol)) continue;
    if (--failure.countdown > 0 || result != CUDA_SUCCESS) continue;
    result = failure.code;
    sticky = failure.sticky;
    ++known.failed;
  }
  return result;
}

bool spoils(const Stream& stream) {
  if (!stream.capture || capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED ||
      stream.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return false;
  const bool own = stream.capturer == std::this_thread::get_id();
  return own || (stream.mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

}  // namespace

State& state() {
  static State& known = *[] {
    auto* made = new State;  // outlives every user
    made->devices.resize(1);
    return made;
  }();
  return known;
}

std::vector<Context*>& context_stack() {
  thread_local std::vector<Context*> stack;
  return stack;
}

CUstreamCaptureMode& capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

Entry enter(const char* symbol, Needs needs) {
  State& known = state();
  Entry entry{std::unique_lock(known.mutex), CUDA_SUCCESS};
  known.calls.push_back(symbol);
  bool sticky = false;
  entry.result = take_failure(known, symbol, sticky);
  Context* context = context_stack().empty() ? nullptr : context_stack().back();
  if (sticky && context && context->fault == CUDA_SUCCESS) context->fault = entry.result;
  if (needs == Needs::nothing || entry.result != CUDA_SUCCESS) return entry;
  if (!known.initialized)
    entry.result = CUDA_ERROR_NOT_INITIALIZED;
  else if (!context || context->retained == 0)
    entry.result = CUDA_ERROR_INVALID_CONTEXT;
  else
    entry.result = context->fault;
  return entry;
}

int& Inside::depth() {
  thread_local int depth = 0;
  return depth;
}

CUresult check_capture() {
  CUresult result = CUDA_SUCCESS;
  for (auto& [handle, stream] : state().streams) {
    if (!spoils(*stream)) continue;
    stream->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

size_t allocated_bytes(const Context* context) {
  size_t bytes = 0;
  for (const auto& [address, allocation] : state().memory)
    if (allocation.context == context) bytes += allocation.size;
  return bytes;
}

void destroy_context(DeviceConfig& device) {
  State& known = state();
  const Context* context = device.context.get();
  std::erase_if(known.memory, [&](const auto& entry) {
    if (entry.second.context != context) return false;
    std::free(reinterpret_cast<void*>(entry.first));
    return true;
  });
  known.streams.remove_of(context);
  known.events.remove_of(context);
  known.graphs.remove_of(context);
  known.executables.remove_of(context);
  known.modules.remove_of(context);
  device.context->fault = CUDA_SUCCESS;
}

Stream* default_stream(Context* context) {
  static std::map<Context*, std::unique_ptr<Stream>> streams;
  std::unique_ptr<Stream>& stream = streams[context];
  if (!stream) stream = std::make_unique<Stream>();
  stream->context = context;
  return stream.get();
}

// The stream, where it belongs to the current context.
Stream* find_stream(CUstream handle) {
  Context* current = context_stack().empty() ? nullptr : context_stack().back();
  if (!handle) return current ? default_stream(current) : nullptr;
  Stream* stream = state().streams.find(handle);
  if (!stream) ++state().unknown_streams;
  return stream && stream->context == current ? stream : nullptr;
}

void merge(Clock& into, const Clock& other) {
  for (const auto& [stream, count] : other) into[stream] = std::max(into[stream], count);
}

uint64_t new_stream_number() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

Stamp& current_stamp() {
  thread_local Stamp stamp;
  return stamp;
}

Stamp next_stamp(Stream& stream) {
  Stamp stamp{stream.number, 0, stream.clock};
  stamp.position = ++stream.clock[stream.number];
  return stamp;
}

CUresult run(const Operation& operation, const Stamp& stamp) {
  constexpr double kMicrosecondsPerOperation = 200;  // so long that measuring repeats nothing: the emulator is slow
  current_stamp() = stamp;
  {
    const std::lock_guard lock(state().mutex);
    state().microseconds += kMicrosecondsPerOperation;
  }
  return operation.run();
}

CUresult submit(CUstream handle, Operation operation, Entry& entry) {
  Stream* stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) {
    if (stream->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    operation.stamp = next_stamp(*stream);
    stream->capture->operations.push_back(std::move(operation));
    return CUDA_SUCCESS;
  }
  const Stamp stamp = next_stamp(*stream);
  entry.lock.unlock();  // kernels run for a while
  return run(operation, stamp);
}

}  // namespace fake_cuda
