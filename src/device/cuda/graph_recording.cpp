// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/graph_recording.h"

namespace lathe::cuda {
namespace {

struct Graph {
  const Driver& driver;
  CUgraph handle;
  ~Graph() { driver.cuGraphDestroy(handle); }
};

// A capture always ends, or the stream could not be used again; `work`'s own failure is the one to tell.
Result<CUgraph> capture(Stream& stream, const std::function<Result<>(Queue&)>& work) {
  LATHE_TRY(stream.capture_begin());
  const Result<> worked = work(stream);
  Result<CUgraph> graph = stream.capture_end();
  if (worked) return graph;
  if (graph) stream.context().driver().cuGraphDestroy(*graph);
  return fail(worked.error());
}

}  // namespace

Result<std::unique_ptr<GraphRecording>> GraphRecording::record(const std::shared_ptr<Context>& context,
                                                               const std::function<Result<>(Queue&)>& work) {
  std::unique_ptr<GraphRecording> recording(new GraphRecording(context));
  LATHE_ASSIGN(recording->stream_, Stream::create_for_capture(context));
  LATHE_TRY(recording->update(work));
  return recording;
}

GraphRecording::~GraphRecording() {
  if (!executable_) return;
  const ContextScope scope(*context_);
  destroy_executable();
}

void GraphRecording::destroy_executable() {
  if (executable_) context_->driver().cuGraphExecDestroy(executable_);  // after the launches that it has under way
  executable_ = nullptr;
}

Result<> GraphRecording::replay(Queue& queue) {
  LATHE_TRY(context_->usable());
  if (!executable_)
    return fail(ErrorCode::invalid_state, "the recording is empty, because recording it anew has failed");
  return context_->check(context_->driver().cuGraphLaunch(executable_, static_cast<Stream&>(queue).handle()),
                         "running recorded work");
}

Result<> GraphRecording::update(const std::function<Result<>(Queue&)>& work) {
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*stream_));
  LATHE_ASSIGN(const CUgraph handle, capture(*stream_, work));
  const Graph graph{context_->driver(), handle};
  CUgraphExecUpdateResultInfo info{};
  if (executable_ && context_->driver().cuGraphExecUpdate(executable_, handle, &info) == CUDA_SUCCESS) return {};
  destroy_executable();
  return instantiate(handle);
}

Result<> GraphRecording::instantiate(CUgraph graph) {
  return context_->check(context_->driver().cuGraphInstantiate(&executable_, graph, 0), "preparing recorded work");
}

}  // namespace lathe::cuda
