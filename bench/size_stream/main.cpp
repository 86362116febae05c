// SPDX-License-Identifier: Apache-2.0
// A stream of sequences of many lengths through an encoder: the latency of each run, with kernels for open sizes and
// with kernels that are specialised for the lengths, in the background or before the run. bench/size_stream.py draws
// it.
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "base/atomic_file.h"
#include "base/file.h"
#include "device/family.h"
#include "runtime/context.h"
#include "size_stream/encoder.h"

namespace lathe::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct StderrLog final : Log, nvinfer1::ILogger {
  bool is_verbose = false;
  void write(lathe::Severity severity, std::string_view line) override {
    if (is_verbose || severity <= lathe::Severity::warning)
      std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  }
  void log(nvinfer1::ILogger::Severity severity, const char* message) noexcept override {
    if (severity <= nvinfer1::ILogger::Severity::kWARNING) std::fprintf(stderr, "%s\n", message);
  }
};

struct Options {
  EncoderSizes sizes;
  std::string target = "cpu", strategy = "lazy", graphs = "each", plan, cache, json;
  size_t lengths = 200, runs = 100'000;
  double seconds = 30, budget = 10;
  int64_t fixed = 0;  // the engine is built for this length alone
  bool is_verbose = false;
};

// Different lengths, in a random order.
std::vector<int64_t> lengths_of(const Options& options) {
  std::vector<int64_t> lengths;
  for (int64_t n = options.sizes.least; n <= options.sizes.most; ++n) lengths.push_back(n);
  std::mt19937 random(1);
  std::shuffle(lengths.begin(), lengths.end(), random);
  lengths.resize(std::min(lengths.size(), options.lengths));
  return lengths;
}

Result<std::vector<std::byte>> plan_of(Options& options, StderrLog& log) {
  options.sizes.usual = std::min(options.sizes.usual, options.sizes.most);
  if (options.fixed > 0) options.sizes.least = options.sizes.usual = options.sizes.most = options.fixed;
  if (!options.plan.empty())
    if (const auto file = MappedFile::open(options.plan))
      return std::vector<std::byte>((*file)->bytes().begin(), (*file)->bytes().end());
  const auto start = Clock::now();
  const auto plan = build_encoder(options.sizes, options.target, options.budget, log);
  if (!plan) return fail(ErrorCode::invalid_argument, "the encoder could not be built");
  const auto* bytes = static_cast<const std::byte*>(plan->data());
  std::fprintf(stderr, "built in %.1f s, %.1f MB\n", seconds_since(start), static_cast<double>(plan->size()) / 1e6);
  std::vector<std::byte> copy(bytes, bytes + plan->size());
  if (!options.plan.empty()) LATHE_TRY(write_file_atomically(options.plan, copy));
  return copy;
}

struct Run {
  double at, ms;  // seconds since the beginning; the host waiting
  int64_t length;
};

Result<std::vector<Run>> stream(Context& context, const Options& options) {
  const std::vector<int64_t> lengths = lengths_of(options);
  std::vector<Run> runs;
  const auto start = Clock::now();
  while (runs.size() < options.runs && seconds_since(start) < options.seconds) {
    const int64_t length = lengths[runs.size() % lengths.size()];
    const auto begun = Clock::now();
    LATHE_TRY(context.set_input_dims(0, std::array<int64_t, 3>{1, length, options.sizes.width}));
    LATHE_TRY(context.run());
    runs.push_back({std::chrono::duration<double>(begun - start).count(), 1000 * seconds_since(begun), length});
  }
  return runs;
}

Result<> write(const Options& options, const Engine& engine, const KernelCache& cache, const std::vector<Run>& runs) {
  nlohmann::ordered_json json;
  json["strategy"] = options.fixed > 0 ? "fixed" : options.strategy;
  json["device"] = engine.device().timing_key();
  json["lengths"] = options.lengths;
  for (const Run& run : runs) json["runs"].push_back({run.at, run.length, run.ms});
  if (const Specializer* const specializer = engine.specializer()) {
    const Specializer::Counts counts = specializer->counts();
    json["sizes"] = counts.sizes;
    json["waiting"] = counts.waiting;
    json["codes"] = counts.made;
    json["failed"] = counts.failed;
    json["dropped"] = counts.dropped;
  }
  json["compiled"] = cache.counts().compiled;
  json["cache_bytes"] = cache.counts().bytes;
  const std::string text = json.dump();
  return write_file_atomically(options.json, std::as_bytes(std::span(text)));
}

Result<> measure(Options options) {
  static StderrLog log;  // outlives the engine
  log.is_verbose = options.is_verbose;
  LATHE_ASSIGN(const std::vector<std::byte> plan, plan_of(options, log));
  const DeviceFamily* const family = find_family(options.target);
  if (!family) return fail(ErrorCode::invalid_argument, "there is no device '{}'", options.target);
  LATHE_ASSIGN(std::shared_ptr<Device> device, family->open(0));
  const auto cache = std::make_shared<KernelCache>("size_stream", size_t{1} << 30);
  if (!options.cache.empty())
    if (const auto file = MappedFile::open(options.cache)) LATHE_TRY(cache->merge((*file)->bytes()));
  LATHE_ASSIGN(const auto engine, Engine::load(plan, nullptr, {device, {}}));
  std::vector<DeviceMemory> memory;  // of the longest
  LATHE_ASSIGN(const auto context, Context::create(engine, MemoryPolicy::largest));
  const auto policy = options.strategy == "none"    ? SpecializationPolicy::none
                      : options.strategy == "eager" ? SpecializationPolicy::at_once
                                                    : SpecializationPolicy::background;
  context->set_specialization(policy, {cache, &log});
  if (options.graphs == "each") context->set_graphs(GraphPolicy::of_each_run);
  const auto bytes = static_cast<size_t>(options.sizes.most * options.sizes.width) * sizeof(float);
  for (size_t i = 0; i < 2; ++i) {
    LATHE_ASSIGN(DeviceMemory block, device->allocate(bytes));
    LATHE_TRY(context->set_address(i, block.data()));
    memory.push_back(std::move(block));
  }
  LATHE_ASSIGN(const std::vector<Run> runs, stream(*context, options));
  if (!options.cache.empty()) LATHE_TRY(write_file_atomically(options.cache, cache->serialize()));
  std::fprintf(stderr, "%s: %zu runs\n", options.strategy.c_str(), runs.size());
  return options.json.empty() ? Result<>() : write(options, *engine, *cache, runs);
}

}  // namespace
}  // namespace lathe::bench

int main(int argc, char** argv) {
  CLI::App app("Runs sequences of many lengths through an encoder.", "bench_size_stream");
  lathe::bench::Options options;
  app.add_option("--target", options.target, "cpu or cuda");
  app.add_option("--strategy", options.strategy)->check(CLI::IsMember({"none", "lazy", "eager"}));
  app.add_option("--graphs", options.graphs, "CUDA graphs of each length, or of lengths that repeat the last one")
      ->check(CLI::IsMember({"each", "repeated"}));
  app.add_option("--lengths", options.lengths, "How many different ones");
  app.add_option("--most", options.sizes.most, "The longest");
  app.add_option("--layers", options.sizes.layers);
  app.add_option("--width", options.sizes.width);
  app.add_option("--heads", options.sizes.heads);
  app.add_option("--hidden", options.sizes.hidden);
  app.add_option("--runs", options.runs, "At most");
  app.add_option("--seconds", options.seconds, "To go on for");
  app.add_option("--budget", options.budget, "Seconds of tuning");
  app.add_flag("--verbose", options.is_verbose, "Print what the runtime tells");
  app.add_option("--fixed", options.fixed, "Build the engine for this length alone, and run it");
  app.add_option("--plan", options.plan, "File of the plan: used where it is there, else written");
  app.add_option("--cache", options.cache, "File of a runtime cache: read where it is there, and written");
  app.add_option("--json", options.json, "File for the latency of each run");
  CLI11_PARSE(app, argc, argv);
  const lathe::Result<> result = lathe::bench::measure(options);
  if (!result) return std::fprintf(stderr, "%s\n", result.error().to_string().c_str()), 1;
}
