// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/captured_graph.h"

namespace lathe::cuda {
namespace {

struct Graph {
  const Driver& driver;
  CUgraph handle;
  ~Graph() { driver.cuGraphDestroy(handle); }
};

// A capture always ends, or the stream could not be used again; `work`'s own failure is the one to tell.
Result<CUgraph> graph_of(Stream& stream, const std::function<Result<>(Queue&)>& work) {
  LATHE_TRY(stream.capture_begin());
  const Result<> worked = work(stream);
  Result<CUgraph> graph = stream.capture_end();
  if (worked) return graph;
  if (graph) stream.context().driver().cuGraphDestroy(*graph);
  return fail(worked.error());
}

}  // namespace

Result<std::unique_ptr<CudaGraph>> CudaGraph::capture(const std::shared_ptr<PrimaryContext>& context,
                                                      const std::function<Result<>(Queue&)>& work) {
  std::unique_ptr<CudaGraph> graph(new CudaGraph(context));
  LATHE_ASSIGN(graph->stream_, Stream::create_for_capture(context));
  LATHE_TRY(graph->update(work));
  return graph;
}

CudaGraph::~CudaGraph() {
  if (!executable_) return;
  const ContextScope scope(*context_);
  destroy_executable();
}

void CudaGraph::destroy_executable() {
  if (executable_) context_->driver().cuGraphExecDestroy(executable_);  // after the launches that it has under way
  executable_ = nullptr;
}

Result<> CudaGraph::replay(Queue& queue) {
  LATHE_TRY(context_->usable());
  if (!executable_)
    return fail(ErrorCode::invalid_state, "the captured graph is empty, because capturing the work anew has failed");
  return context_->check(context_->driver().cuGraphLaunch(executable_, static_cast<Stream&>(queue).handle()),
                         "running captured work");
}

Result<> CudaGraph::update(const std::function<Result<>(Queue&)>& work) {
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*stream_));
  LATHE_ASSIGN(const CUgraph handle, graph_of(*stream_, work));
  const Graph graph{context_->driver(), handle};
  CUgraphExecUpdateResultInfo info{};
  if (executable_ && context_->driver().cuGraphExecUpdate(executable_, handle, &info) == CUDA_SUCCESS) return {};
  destroy_executable();
  return instantiate(handle);
}

Result<> CudaGraph::instantiate(CUgraph graph) {
  return context_->check(context_->driver().cuGraphInstantiate(&executable_, graph, 0), "preparing captured work");
}

}  // namespace lathe::cuda
