// SPDX-License-Identifier: Apache-2.0
// lathe bench
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "failure.h"
#include "session.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

// Milliseconds of each run, sorted. At least 5 runs, however long they take.
std::vector<double> measure(Inference& inference, double seconds) {
  std::vector<double> times;
  times.reserve(1 << 16);
  for (const auto warm = Clock::now(); seconds_since(warm) < std::min(0.2, seconds / 5);) inference.run();
  const auto begin = Clock::now();
  while (times.size() < 5 || seconds_since(begin) < seconds) {
    const auto run_start = Clock::now();
    inference.run();
    times.push_back(seconds_since(run_start) * 1e3);
  }
  std::sort(times.begin(), times.end());
  return times;
}

void show(const Json& json) {
  const auto row = [&](const char* name, const std::string& text) { fmt::print("{:<22}{}\n", name, text); };
  const auto number = [&](const char* key) { return json[key].get<double>(); };
  row("median", human_time(number("median_ms")));
  row("least", human_time(number("min_ms")));
  row("90 % below", human_time(number("p90_ms")));
  row("99 % below", human_time(number("p99_ms")));
  row("throughput", fmt::format("{:.1f} runs/s ({:.0f} measured)", number("throughput"), number("runs")));
  row(json["built"].get<bool>() ? "build and load" : "load", human_time(number("load_ms")));
  row("to the first result", human_time(number("first_ms")));
  row("peak memory", fmt::format("{} ({} before loading)", human_bytes(number("peak_kb") * 1024),
                                 human_bytes(number("before_kb") * 1024)));
}

}  // namespace

int bench(const BenchCommand& command) {
  ConsoleLogger logger(command.settings.least_severity());
  const ShapeMap shapes = parse_shapes(command.shapes, "--shapes");
  const auto files = parse_files(command.inputs, "--loadInputs");
  BuildRequest request{&command.settings, ShapeRanges::exactly(shapes), true, nullptr};
  request.runtime = &command.runtime;
  const int64_t before_kb = peak_kb();
  const auto start = Clock::now();
  Session session = Session::open(command.file, request, logger);
  const double load_ms = seconds_since(start) * 1e3;
  const std::vector<HostTensor> inputs = gather_inputs(session, files, shapes, true);  // not part of the first result
  const auto given = Clock::now();
  Inference inference(session, inputs, logger);
  inference.run();
  const double first_ms = load_ms + seconds_since(given) * 1e3;
  const std::vector<double> times = measure(inference, command.seconds);
  double total = 0;
  for (double time : times) total += time;
  const Json json = {{"file", command.file},
                     {"built", is_model_file(command.file)},
                     {"threads", command.settings.threads},
                     {"median_ms", quantile(times, 0.5)},
                     {"min_ms", times.front()},
                     {"p90_ms", quantile(times, 0.9)},
                     {"p99_ms", quantile(times, 0.99)},
                     {"runs", times.size()},
                     {"throughput", static_cast<double>(times.size()) / total * 1e3},
                     {"load_ms", load_ms},
                     {"first_ms", first_ms},
                     {"peak_kb", peak_kb()},
                     {"before_kb", before_kb}};
  show(json);
  if (!command.json.empty()) write_file(command.json, json.dump(2) + "\n");
  return 0;
}

}  // namespace lathe::cli
