// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/tensor_file.h"
#include "trtexec/report.h"
#include "trtexec/statistics.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

using Json = nlohmann::ordered_json;
using Part = double (QueryTimes::*)() const;

std::vector<double> times_of(const RunTrace& trace, Part part) {
  std::vector<double> times;
  for (const QueryTimes& query : trace.queries) times.push_back((query.*part)());
  return times;
}

std::string line_of(const TimeStatistics& figures, const std::vector<double>& percents) {
  std::string text = fmt::format("min = {:.6g} ms, max = {:.6g} ms, mean = {:.6g} ms, median = {:.6g} ms",
                                 figures.least, figures.largest, figures.mean, figures.median);
  for (size_t i = 0; i < percents.size(); ++i)
    text += fmt::format(", percentile({:g}%) = {:.6g} ms", percents[i], figures.percentiles[i]);
  return text;
}

void print_trace(const RunTrace& trace, int runs, TrtexecLog& log) {
  log.blank();
  log.info("=== Trace details ===");
  log.info("Trace averages of {} runs:", runs);
  const auto each = static_cast<size_t>(runs);
  for (size_t from = 0; from + each <= trace.queries.size(); from += each) {
    double compute = 0, latency = 0, enqueue = 0;
    for (size_t i = from; i < from + each; ++i) {
      compute += trace.queries[i].compute();
      latency += trace.queries[i].latency();
      enqueue += trace.queries[i].enqueue();
    }
    log.info("Average on {} runs - GPU latency: {:.6g} ms - Host latency: {:.6g} ms (enqueue {:.6g} ms)", runs,
             compute / runs, latency / runs, enqueue / runs);
  }
}

// What the figures say about how to read them.
void advise(const TimeStatistics& enqueue, const TimeStatistics& h2d, const TimeStatistics& compute,
            const TimeStatistics& d2h, const PerformanceContext& context, TrtexecLog& log) {
  if (context.on_gpu && enqueue.median > 0.8 * compute.median) {
    log.warn("* Throughput may be bound by Enqueue Time rather than GPU Compute and the GPU may be under-utilized.");
    if (!context.settings.cuda_graph)
      log.warn(
          "  If not already in use, --useCudaGraph (utilize CUDA graphs where "
          "possible) may increase the throughput.");
  }
  if (h2d.median > compute.median || d2h.median > compute.median) {
    log.warn(
        "* Throughput may be bound by {} transfers of data rather than GPU Compute and the GPU may be "
        "under-utilized.",
        h2d.median > d2h.median ? "host-to-device" : "device-to-host");
    log.warn("  Add --noDataTransfers flag to disable data transfers.");
  }
  constexpr double kStable = 1;  // per cent
  if (compute.variation < kStable) return;
  log.warn("* GPU compute time is unstable, with coefficient of variance = {:.6g}%.", compute.variation);
  log.warn("{}", context.on_gpu
                     ? "  If not already in use, locking GPU clock frequency or adding --useSpinWait may improve "
                       "the stability."
                     : "  Other programs on this machine, and clock rates that change, are the usual reasons.");
}

void explain(const PerformanceContext& context, TrtexecLog& log) {
  log.info("Explanations of the performance metrics are printed in the verbose logs.");
  log.verbose("");
  log.verbose("=== Explanations of the performance metrics ===");
  log.verbose("Total Host Walltime: from the first query (after the warm-up) until the last one has ended.");
  log.verbose("GPU Compute Time: what the device takes to compute one query{}.",
              context.on_gpu ? "" : " (here the CPU is the device)");
  log.verbose("Total GPU Compute Time: the sum of it. Much less than the walltime: the device often waits.");
  log.verbose("Throughput: queries by the Total Host Walltime.");
  log.verbose("Enqueue Time: what the host takes to enqueue one query{}.",
              context.on_gpu ? "; if it is longer than GPU Compute Time, the GPU waits for the host"
                             : "; on a CPU, enqueueing computes it");
  log.verbose("H2D Latency: copying the inputs of one query to the device.");
  log.verbose("D2H Latency: copying its outputs back.");
  log.verbose("Latency: the sum of H2D Latency, GPU Compute Time and D2H Latency.");
}

}  // namespace

void print_performance(const RunTrace& trace, const Options& options, const PerformanceContext& context,
                       TrtexecLog& log) {
  print_trace(trace, options.average_runs, log);
  const std::vector<double>& percents = options.percentiles;
  const auto figures = [&](Part part) { return statistics_of(times_of(trace, part), percents); };
  const TimeStatistics enqueue = figures(&QueryTimes::enqueue), h2d = figures(&QueryTimes::h2d);
  const TimeStatistics compute = figures(&QueryTimes::compute), d2h = figures(&QueryTimes::d2h);
  const auto count = static_cast<double>(trace.queries.size());
  log.blank();
  log.info("=== Performance summary ===");
  if (trace.queries.empty()) return log.warn("No query has run.");
  log.info("Throughput: {:.6g} qps", count / trace.seconds);
  log.info("Latency: {}", line_of(figures(&QueryTimes::latency), percents));
  log.info("Enqueue Time: {}", line_of(enqueue, percents));
  log.info("H2D Latency: {}", line_of(h2d, percents));
  log.info("GPU Compute Time: {}", line_of(compute, percents));
  log.info("D2H Latency: {}", line_of(d2h, percents));
  log.info("Total Host Walltime: {:.6g} s", trace.seconds);
  log.info("Total GPU Compute Time: {:.6g} s", compute.mean * count / 1e3);
  advise(enqueue, h2d, compute, d2h, context, log);
  explain(context, log);
  log.blank();
}

void export_times(const RunTrace& trace, const std::string& path) {
  Json list = Json::array();
  for (const QueryTimes& query : trace.queries)
    list.push_back({{"startEnqMs", query.enqueue_start},
                    {"endEnqMs", query.enqueue_end},
                    {"startH2dMs", query.h2d_start},
                    {"endH2dMs", query.h2d_end},
                    {"startComputeMs", query.compute_start},
                    {"endComputeMs", query.compute_end},
                    {"startD2hMs", query.d2h_start},
                    {"endD2hMs", query.d2h_end},
                    {"h2dMs", query.h2d()},
                    {"computeMs", query.compute()},
                    {"d2hMs", query.d2h()},
                    {"latencyMs", query.latency()}});
  cli::write_file(path, list.dump(1) + "\n");
}

void export_outputs(const std::vector<cli::HostTensor>& outputs, const std::string& path) {
  Json list = Json::array();
  for (const cli::HostTensor& output : outputs) {
    Json values = Json::array();
    const bool whole = !cli::is_float(output.type);
    for (int64_t i = 0; i < cli::volume(output.dims); ++i) {
      const double value = cli::element(output, i);
      if (whole)
        values.push_back(static_cast<int64_t>(value));
      else
        values.push_back(value);
    }
    list.push_back({{"name", output.name}, {"dimensions", shape_text(output.dims)}, {"values", std::move(values)}});
  }
  cli::write_file(path, list.dump() + "\n");
}

}  // namespace lathe::trtexec
