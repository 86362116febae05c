// SPDX-License-Identifier: Apache-2.0
// Running an engine over and over, and when what happened.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "trtexec/bindings.h"

namespace lathe::trtexec {

// Milliseconds since measuring began. Of the host: the calls that enqueue; of the device: copies and computation. Where
// nothing is copied, those times are 0 long.
struct QueryTimes {
  double enqueue_start = 0, enqueue_end = 0;
  double h2d_start = 0, h2d_end = 0, compute_start = 0, compute_end = 0, d2h_start = 0, d2h_end = 0;

  double enqueue() const { return enqueue_end - enqueue_start; }
  double h2d() const { return h2d_end - h2d_start; }
  double compute() const { return compute_end - compute_start; }
  double d2h() const { return d2h_end - d2h_start; }
  double latency() const { return h2d() + compute() + d2h(); }
};

// The beginning of measuring, on both clocks.
struct Timebase {
  using Clock = std::chrono::steady_clock;
  Clock::time_point host = Clock::now();
  std::unique_ptr<GpuEvent> device;  // null for engines of the CPU

  double milliseconds() const { return std::chrono::duration<double, std::milli>(Clock::now() - host).count(); }
};

// One context with its inputs and outputs: queries are enqueued, and finished in the same order. One thread.
class QueryStream {
 public:
  virtual ~QueryStream() = default;
  virtual size_t depth() const = 0;  // queries that may be under way at a time
  virtual std::unique_ptr<Timebase> begin() = 0;
  virtual void delay(int milliseconds) = 0;  // what is enqueued next computes so much later
  virtual void enqueue(const Timebase& base) = 0;
  virtual QueryTimes finish(const Timebase& base) = 0;
  virtual std::vector<cli::HostTensor> outputs() = 0;  // of the last query
  virtual const IoBindings& bindings() const = 0;
};

// How a context is run.
struct QuerySettings {
  bool transfers = false, cuda_graph = false, spin_wait = false, expose_dma = false;
  bool announces = true;  // says which inputs and outputs there are
};

// `shapes_are_set` is called before the context runs for the first time.
std::unique_ptr<QueryStream> make_query_stream(nvinfer1::IExecutionContext& context, const IoPlace& place,
                                               const QuerySettings& settings, const Options& options,
                                               const ReferencePair& files, TrtexecLog& log,
                                               const std::function<void()>& shapes_are_set);

struct RunLimits {
  int iterations = 0;  // at least so many on each stream,
  double seconds = 0;  // and for so long; negative: until interrupted
  int idle_ms = 0;     // between queries
  bool thread_each = false;
  int sleep_ms = 0;                  // before the first one computes
  const CudaCalls* calls = nullptr;  // threads need the device current
  int ordinal = 0;
};

// The times of all queries, in the order in which they ended, and how long that took. An interrupt (SIGINT) ends it.
struct RunTrace {
  std::vector<QueryTimes> queries;
  double seconds = 0;
};
RunTrace run_queries(const std::vector<std::unique_ptr<QueryStream>>& streams, const RunLimits& limits);

}  // namespace lathe::trtexec
