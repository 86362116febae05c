// SPDX-License-Identifier: Apache-2.0
// Builds a network and times it step by step: where the time of an inference goes.
//   bench_networks MODEL.onnx [threads] [budget seconds]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "build/build.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/open_device.h"
#include "onnx/import.h"
#include "onnx/reader.h"
#include "plan/writer.h"
#include "runtime/context.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

class StderrLog final : public Log {
 public:
  void write(Severity, std::string_view line) override {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  }
  bool accepts(Severity severity) const override { return severity <= Severity::warning; }
};

Result<std::vector<std::byte>> build(const char* path, double budget, std::shared_ptr<Device> device) {
  LATHE_ASSIGN(onnx::Model model, onnx::read_model_file(path));
  ir::Graph graph;
  LATHE_TRY(onnx::import_model(model, graph));
  BuildOptions options;
  options.tactics = cpu::cpu_tactics();
  options.target = device->target();
  options.tuner.threads = device->threads();
  StderrLog log;
  options.tuner.log = &log;
  options.tuner.budget_seconds = budget;
  options.tuner.timing_key = device->timing_key();
  options.tuner.device = std::move(device);
  const auto start = Clock::now();
  LATHE_ASSIGN(std::unique_ptr<BuiltPlan> built, build_plan(std::move(graph), options));
  std::printf("build %.0f ms: passes %.0f ms, tuning %.0f ms (%d problems), %zu steps, %.1f MB weights\n",
              milliseconds_since(start), built->report.seconds_passes * 1e3, built->report.seconds_tuning * 1e3,
              built->report.tuned, built->plan.steps.size(), static_cast<double>(built->weights.size()) / 1e6);
  for (const RegionReport& region : built->report.regions) {
    if (region.kind != "eval") continue;
    std::printf("  no kernel for %s\n", region.name.c_str());
    for (const std::string& refusal : region.refusals) std::printf("      %s\n", refusal.c_str());
  }
  return plan::write_plan(built->plan);
}

Result<> run(const char* path, int threads, double budget) {
  LATHE_ASSIGN(const std::shared_ptr<Device> device, cpu::open_device({.threads = threads}));
  LATHE_ASSIGN(std::vector<std::byte> bytes, build(path, budget, device));
  const auto load = Clock::now();
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  LATHE_ASSIGN(std::shared_ptr<const Engine> engine, Engine::load(*owner, owner, {device, {}}));
  LATHE_ASSIGN(std::unique_ptr<Context> context, Context::create(engine));
  std::vector<std::vector<float>> memory;
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < engine->plan().bindings.size(); ++i) {
    Dims dims;
    for (const Expr& dim : engine->plan().tensors[engine->plan().bindings[i].tensor].dims)
      dims.push_back(dim.as_constant().value_or(1));
    if (engine->plan().bindings[i].is_input) LATHE_TRY(context->set_input_dims(i, dims));
    memory.emplace_back(static_cast<size_t>(checked_volume(dims).value_or(0)) * 2);
    for (float& x : memory.back()) x = normal(generator);
    LATHE_TRY(context->set_address(i, memory.back().data()));
  }
  LATHE_TRY(context->run());
  std::printf("load to first inference %.1f ms, memory %.1f MB\n", milliseconds_since(load),
              static_cast<double>(*context->memory_bytes()) / 1e6);
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 10 || milliseconds_since(begin) < 3000) {
    const auto start = Clock::now();
    LATHE_TRY(context->run());
    times.push_back(milliseconds_since(start));
  }
  std::sort(times.begin(), times.end());
  std::printf("median %.3f ms, min %.3f ms, %zu runs\n", times[times.size() / 2], times[0], times.size());

  std::map<const plan::Step*, double> by_step;
  context->profiler = [&](const plan::Step& step, double ms) { by_step[&step] += ms / 20; };
  for (int i = 0; i < 20; ++i) LATHE_TRY(context->run());
  std::vector<std::pair<double, const plan::Step*>> order;
  std::map<std::string, double> by_kernel;
  for (const auto& [step, ms] : by_step) {
    order.emplace_back(ms, step);
    by_kernel[step->kernel + (step->op.empty() ? "" : " " + step->op)] += ms;
  }
  std::sort(order.rbegin(), order.rend());
  for (const auto& [kernel, ms] : by_kernel) std::printf("  %8.3f ms  %s\n", ms, kernel.c_str());
  for (size_t i = 0; i < std::min<size_t>(order.size(), 25); ++i) {
    const plan::Step& step = *order[i].second;
    const plan::Tensor& out = engine->plan().tensors[step.outputs[0]];
    std::printf("  %7.3f ms  %-10s %-22s %-40s %s\n", order[i].first, step.kernel.c_str(), to_string(out.dims).c_str(),
                step.tactic.c_str(), step.name.substr(0, 70).c_str());
  }
  return {};
}

}  // namespace
}  // namespace lathe

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: bench_networks MODEL.onnx [threads] [budget seconds]\n", stderr), 2;
  const auto result = lathe::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 1, argc > 3 ? std::atof(argv[3]) : 10);
  if (!result) return std::fprintf(stderr, "%s\n", result.error().to_string().c_str()), 1;
}
