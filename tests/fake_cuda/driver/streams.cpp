// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs of the stand-in driver.
#include "fake_cuda/driver/state.h"

#include <algorithm>
#include <utility>

namespace fake_cuda {
namespace {

void draw_in(Stream& stream, const Event& event) {
  stream.capture = event.capture;
  stream.began_capture = false;
  stream.outside = std::exchange(stream.clock, {});
  stream.mode = event.captured->mode;
  stream.capturer = event.captured->capturer;
  stream.invalidated = false;
}

// Of the stream that it began with, and with it of those that events have drawn in: all of their work has to come
// before something of the first one's.
CUresult end_capture(Stream& origin) {
  const std::shared_ptr<Graph> graph = origin.capture;
  const Clock known = origin.clock;
  graph->is_open = false;
  CUresult result = CUDA_SUCCESS;
  for (auto& [handle, stream] : state().streams) {
    if (stream->capture != graph) continue;
    const auto joined = known.find(stream->number);
    const uint64_t given = stream->clock[stream->number];
    if (given > 0 && (joined == known.end() || joined->second < given)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (stream->invalidated) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    stream->capture = nullptr;
    stream->clock = std::exchange(stream->outside, {});
  }
  return result;
}

// The operations with their stamps in this run of the graph, which the stream's next operation comes behind.
std::vector<Operation> next_round(Graph& graph, Stream& on) {
  Clock totals;
  for (const Operation& operation : graph.operations) {
    uint64_t& most = totals[operation.stamp.stream];
    most = std::max(most, operation.stamp.position);
  }
  for (const auto& [stream, total] : totals)
    if (!graph.numbers.contains(stream)) graph.numbers[stream] = new_stream_number();
  std::vector<Operation> operations = graph.operations;
  for (Operation& operation : operations) {
    Stamp& stamp = operation.stamp;
    Clock before = on.clock;
    for (const auto& [stream, count] : stamp.before)
      if (totals.contains(stream)) before[graph.numbers[stream]] = graph.rounds * totals[stream] + count;
    stamp = {graph.numbers[stamp.stream], graph.rounds * totals[stamp.stream] + stamp.position, std::move(before)};
  }
  ++graph.rounds;
  for (const auto& [stream, total] : totals) on.clock[graph.numbers[stream]] = graph.rounds * total;
  return operations;
}

}  // namespace
}  // namespace fake_cuda

namespace lathe::cuda {
extern "C" {

using fake_cuda::find_stream;
using fake_cuda::state;

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  FAKE_ENTER(Needs::context);
  auto made = std::make_unique<fake_cuda::Stream>();
  made->context = fake_cuda::context_stack().back();
  state().streams.add(std::move(made), stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  FAKE_ENTER_RELEASE(Needs::context);
  fake_cuda::Stream* found = state().streams.find(stream);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  state().streams.remove(found);
  return entry.result;
}

CUresult cuStreamSetAttribute(CUstream stream, CUlaunchAttributeID attribute, const CUlaunchAttributeValue* value) {
  FAKE_ENTER(Needs::context);
  if (!find_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) return CUDA_ERROR_INVALID_VALUE;
  state().cache_windows.push_back(value->accessPolicyWindow.num_bytes);
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  FAKE_ENTER(Needs::context);
  if (limit != CU_LIMIT_PERSISTING_L2_CACHE_SIZE || value > size_t{30} << 20) return CUDA_ERROR_INVALID_VALUE;
  state().cache_aside = value;
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Stream* found = find_stream(stream);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  if (!found->capture) return CUDA_SUCCESS;
  found->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Stream* found = find_stream(stream);
  const fake_cuda::Event* awaited = state().events.find(event);
  if (!found || !awaited) return CUDA_ERROR_INVALID_HANDLE;
  if (awaited->capture && !awaited->capture->is_open) return CUDA_ERROR_CAPTURED_EVENT;
  if (awaited->capture && !found->capture) fake_cuda::draw_in(*found, *awaited);
  if (found->capture == awaited->capture) return fake_cuda::merge(found->clock, awaited->clock), CUDA_SUCCESS;
  found->invalidated = true;  // for the event is of work outside the capture
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_ENTER(Needs::context);
  const fake_cuda::Stream* found = find_stream(stream);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  *status = !found->capture      ? CU_STREAM_CAPTURE_STATUS_NONE
            : found->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Stream* found = stream ? find_stream(stream) : nullptr;
  if (!found) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (found->capture) return CUDA_ERROR_ILLEGAL_STATE;
  found->capture = std::make_shared<fake_cuda::Graph>();
  found->capture->context = found->context;
  found->capture->is_open = true;
  found->began_capture = true;
  found->outside = std::exchange(found->clock, {});
  found->mode = mode;
  found->capturer = std::this_thread::get_id();
  found->invalidated = false;
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  FAKE_ENTER_RELEASE(Needs::context);
  *graph = nullptr;
  fake_cuda::Stream* found = find_stream(stream);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  if (!found->capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (found->mode != CU_STREAM_CAPTURE_MODE_RELAXED && found->capturer != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (!found->began_capture) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  const std::shared_ptr<fake_cuda::Graph> captured = found->capture;
  const CUresult ended = fake_cuda::end_capture(*found);
  if (entry.result != CUDA_SUCCESS) return entry.result;
  if (ended != CUDA_SUCCESS) return ended;
  state().graphs.add(std::make_unique<fake_cuda::Graph>(*captured), graph);
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FAKE_ENTER_RELEASE(Needs::nothing);
  std::swap(*mode, fake_cuda::capture_mode());
  return entry.result;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  FAKE_ENTER(Needs::context);
  auto made = std::make_unique<fake_cuda::Event>();
  made->context = fake_cuda::context_stack().back();
  state().events.add(std::move(made), event);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  FAKE_ENTER_RELEASE(Needs::context);
  fake_cuda::Event* found = state().events.find(event);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  state().events.remove(found);
  return entry.result;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Event* found = state().events.find(event);
  const fake_cuda::Stream* on = find_stream(stream);
  if (!found || !on) return CUDA_ERROR_INVALID_HANDLE;
  found->recorded = true;
  found->clock = on->clock;
  found->captured = on;
  found->capture = on->capture;
  found->microseconds = state().microseconds;
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
  FAKE_ENTER(Needs::context);
  return state().events.find(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  FAKE_ENTER(Needs::context);
  const fake_cuda::Event *first = state().events.find(start), *last = state().events.find(end);
  if (!first || !last || !first->recorded || !last->recorded) return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = static_cast<float>((last->microseconds - first->microseconds) / 1000);
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  FAKE_ENTER(Needs::context);
  const fake_cuda::Graph* found = state().graphs.find(graph);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  state().executables.add(std::make_unique<fake_cuda::Graph>(*found), executable);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Graph* old = state().executables.find(executable);
  const fake_cuda::Graph* found = state().graphs.find(graph);
  if (!old || !found) return CUDA_ERROR_INVALID_VALUE;
  bool equal = old->operations.size() == found->operations.size();
  for (size_t i = 0; equal && i < found->operations.size(); ++i)
    equal = old->operations[i].kind == found->operations[i].kind;
  *info = {equal ? 0 : 2, nullptr, nullptr};
  if (!equal) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  old->operations = found->operations;
  old->numbers.clear();
  old->rounds = 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  FAKE_ENTER(Needs::context);
  fake_cuda::Graph* found = state().executables.find(executable);
  fake_cuda::Stream* on = find_stream(stream);
  if (!found || !on) return CUDA_ERROR_INVALID_HANDLE;
  if (on->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::vector<fake_cuda::Operation> operations = fake_cuda::next_round(*found, *on);
  entry.lock.unlock();
  for (const fake_cuda::Operation& operation : operations)
    if (const CUresult result = fake_cuda::run(operation, operation.stamp); result != CUDA_SUCCESS) return result;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  FAKE_ENTER_RELEASE(Needs::nothing);
  fake_cuda::Graph* found = state().executables.find(executable);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  state().executables.remove(found);
  return entry.result;
}

CUresult cuGraphDestroy(CUgraph graph) {
  FAKE_ENTER_RELEASE(Needs::nothing);
  fake_cuda::Graph* found = state().graphs.find(graph);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  state().graphs.remove(found);
  return entry.result;
}

}  // extern "C"
}  // namespace lathe::cuda

extern "C" __attribute__((visibility("default"))) int fake_cuda_submit(void* stream, const void* kind,
                                                                       void (*run)(void*), void* user,
                                                                       void (*release)(void*)) {
  using namespace fake_cuda;  // NOLINT: the driver's own names
  const std::shared_ptr<void> owned(user, release);
  FAKE_ENTER(Needs::context);
  const auto work = [owned, run] {
    run(owned.get());
    return CUDA_SUCCESS;
  };
  return submit(static_cast<CUstream>(stream), {kind, work}, entry);
}
