// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/captured_graph.h"

namespace lathe::cuda {
namespace {

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

Result<std::unique_ptr<CudaGraph>> CudaGraph::record(const std::shared_ptr<PrimaryContext>& context,
                                                     const std::function<Result<>(Queue&)>& work) {
  std::unique_ptr<CudaGraph> graph(new CudaGraph(context));
  LATHE_ASSIGN(graph->stream_, Stream::create_for_capture(context));
  LATHE_TRY(graph->record(work));
  return graph;
}

Result<std::unique_ptr<CudaGraph>> CudaGraph::capture(const std::shared_ptr<PrimaryContext>& context,
                                                      const std::function<Result<>(Queue&)>& work) {
  LATHE_ASSIGN(std::unique_ptr<CudaGraph> graph, record(context, work));
  LATHE_TRY(graph->make_ready());
  return graph;
}

CudaGraph::~CudaGraph() {
  if (!executable_ && !recorded_) return;
  const ContextScope scope(*context_);
  destroy_recorded();
  destroy_executable();
}

void CudaGraph::destroy_recorded() {
  if (recorded_) context_->driver().cuGraphDestroy(recorded_);
  recorded_ = nullptr;
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
  LATHE_TRY(record(work));
  return make_ready();
}

Result<> CudaGraph::record(const std::function<Result<>(Queue&)>& work) {
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*stream_));
  LATHE_ASSIGN(const CUgraph recorded, graph_of(*stream_, work));
  destroy_recorded();
  recorded_ = recorded;
  return {};
}

Result<> CudaGraph::make_ready() {
  if (!recorded_) return {};
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  const Driver& driver = context_->driver();
  CUgraphExecUpdateResultInfo info{};
  Result<> made;
  if (!executable_ || driver.cuGraphExecUpdate(executable_, recorded_, &info) != CUDA_SUCCESS) {
    destroy_executable();
    made = context_->check(driver.cuGraphInstantiate(&executable_, recorded_, 0), "preparing captured work");
  }
  destroy_recorded();
  return made;
}

Result<> reserve_graphs(const std::shared_ptr<PrimaryContext>& context, const std::function<Result<>(Queue&)>& work,
                        size_t graphs) {
  std::vector<CUgraphExec> executables;
  executables.reserve(graphs);
  LATHE_ASSIGN(const std::unique_ptr<Stream> stream, Stream::create_for_capture(context));
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*stream));
  LATHE_ASSIGN(const CUgraph recorded, graph_of(*stream, work));
  const Driver& driver = context->driver();
  Result<> result;
  while (result && executables.size() < graphs) {
    CUgraphExec executable = nullptr;
    result = context->check(driver.cuGraphInstantiate(&executable, recorded, 0), "taking memory for captured work");
    if (result) executables.push_back(executable);
  }
  for (CUgraphExec executable : executables) driver.cuGraphExecDestroy(executable);
  driver.cuGraphDestroy(recorded);
  return result;
}

}  // namespace lathe::cuda
