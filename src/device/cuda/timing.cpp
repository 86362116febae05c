// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/timing.h"

#include <algorithm>
#include <cmath>

#include "device/cuda/captured_graph.h"

namespace lathe::cuda {
namespace {

using Work = std::function<Result<>(Queue&)>;

// A sample is at least this long, or this many runs of the work.
constexpr double kSampleMicroseconds = 200;
constexpr int kMaxRuns = 20;

struct Event {
  const Driver& driver;
  CUevent handle = nullptr;
  ~Event() {
    if (handle) driver.cuEventDestroy(handle);
  }
};

Result<> record(Event& event, Stream& stream) {
  PrimaryContext& context = stream.context();
  if (!event.handle)
    LATHE_TRY(context.check(context.driver().cuEventCreate(&event.handle, CU_EVENT_DEFAULT), "making an event"));
  return context.check(context.driver().cuEventRecord(event.handle, stream.handle()), "recording an event");
}

Result<double> sample(Stream& stream, const Work& work) {
  PrimaryContext& context = stream.context();
  Event start{context.driver()}, end{context.driver()};
  LATHE_TRY(record(start, stream));
  LATHE_TRY(work(stream));
  LATHE_TRY(record(end, stream));
  LATHE_TRY(context.check(context.driver().cuStreamSynchronize(stream.handle()), "running work on the device"));
  float milliseconds = 0;
  LATHE_TRY(context.check(context.driver().cuEventElapsedTime(&milliseconds, start.handle, end.handle),
                          "measuring work on the device"));
  return 1000.0 * milliseconds;
}

Result<std::vector<double>> samples(Stream& stream, const Work& work, int repeats) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    LATHE_ASSIGN(times.emplace_back(), sample(stream, work));
  }
  return times;
}

}  // namespace

Result<std::vector<double>> time_replays(Stream& stream, CapturedGraph& graph, int repeats) {
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(stream));
  return samples(
      stream, [&](Queue& queue) { return graph.replay(queue); }, repeats);
}

Result<std::vector<double>> time_work(Stream& stream, const Work& work, int repeats) {
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(stream));
  LATHE_TRY(sample(stream, work));
  LATHE_ASSIGN(const double warm, sample(stream, work));
  const int runs =
      static_cast<int>(std::clamp(std::ceil(kSampleMicroseconds / std::max(warm, 0.1)), 1.0, 1.0 * kMaxRuns));
  const Work several = [&](Queue& queue) -> Result<> {
    for (int i = 0; i < runs; ++i) LATHE_TRY(work(queue));
    return {};
  };
  std::unique_ptr<CudaGraph> graph;
  if (runs > 1 && stream.context().driver().has_graphs()) {
    LATHE_ASSIGN(graph, CudaGraph::capture(stream.shared_context(), several));
  }
  const Work timed = graph ? Work([&](Queue& queue) { return graph->replay(queue); }) : several;
  if (graph) LATHE_TRY(sample(stream, timed));
  LATHE_ASSIGN(std::vector<double> times, samples(stream, timed, repeats));
  for (double& each : times) each /= runs;
  return times;
}

}  // namespace lathe::cuda
