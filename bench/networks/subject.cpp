// SPDX-License-Identifier: Apache-2.0
#include "networks/subject.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/atomic_file.h"
#include "base/file.h"
#include "device/launch.h"
#include "onnx/import.h"
#include "onnx/reader.h"
#include "plan/aliased_bindings.h"
#include "plan/writer.h"

namespace lathe::bench {
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

// Every open dimension of the inputs is `size`.
ProfileShapes profile_of(const ir::Graph& graph, int64_t size) {
  ProfileShapes shapes;
  for (const ir::Value* input : graph.inputs()) {
    Dims dims;
    for (const Expr& dim : input->shape()) dims.push_back(dim.as_constant().value_or(size));
    shapes.inputs[input->name()] = {dims, dims, dims, false};
  }
  return shapes;
}

Result<> fill_randomly(Device& device, Queue& queue, const DeviceMemory& memory, DType dtype, uint32_t seed) {
  LATHE_ASSIGN(Tensor content, Tensor::allocate(dtype, {static_cast<int64_t>(memory.size() / size_of(dtype))}));
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < content.volume(); ++i) content.mutable_as<T>()[i] = T(normal(generator));
  });
  return device.upload(memory.data(), content.data(), content.bytes(), queue);
}

}  // namespace

Result<std::unique_ptr<Subject>> Subject::make(const SubjectOptions& options) {
  auto subject = std::make_unique<Subject>();
  subject->name_ = options.model;
  LATHE_TRY(subject->build(options));
  LATHE_TRY(subject->load());
  return subject;
}

Result<> Subject::build(const SubjectOptions& options) {
  LATHE_ASSIGN(onnx::Model model, onnx::read_model_file(options.model));
  ir::Graph graph;
  LATHE_TRY(onnx::import_model(model, graph));
  BuildOptions build;
  StderrLog log;
  TimingCache cache;
  if (!options.timing_cache.empty())
    if (const auto file = MappedFile::open(options.timing_cache)) LATHE_TRY(cache.deserialize((*file)->bytes()));
  BackendSettings settings{options.threads, {}, {}};
  if (options.libraries) settings.libraries = {kCublasLtName, kCudnnName};
  LATHE_ASSIGN(const BackendBuild target, prepare_build(options.target, settings));
  use_backend(target, build);
  device_ = build.tuner.device;
  if (!device_)
    return fail(ErrorCode::cuda_no_device, "no device here is a '{}': networks are timed where they run",
                options.target);
  std::erase_if(build.tactics, [&](const Tactic* tactic) {
    return std::find(options.without.begin(), options.without.end(), tactic->name()) != options.without.end();
  });
  build.log = build.tuner.log = &log;
  build.profiles = {profile_of(graph, options.batch)};
  build.passes.precision = options.precision;
  build.tuner.tf32 = options.tf32;
  build.tuner.budget_seconds = options.budget;
  build.tuner.cache = &cache;
  const auto start = Clock::now();
  LATHE_ASSIGN(std::unique_ptr<BuiltPlan> built, build_plan(std::move(graph), build));
  build_ms_ = milliseconds_since(start);
  report_ = built->report;
  if (!options.timing_cache.empty()) LATHE_TRY(write_file_atomically(options.timing_cache, cache.serialize()));
  for (const RegionReport& region : report_.regions) {
    if (region.kind != "eval") continue;
    std::fprintf(stderr, "  no kernel for %s\n", region.name.c_str());
    for (const std::string& refusal : region.refusals) std::fprintf(stderr, "      %s\n", refusal.c_str());
  }
  LATHE_ASSIGN(bytes_, plan::write_plan(built->plan));
  return {};
}

Result<> Subject::load() {
  const auto start = Clock::now();
  LATHE_ASSIGN(engine_, Engine::load(bytes_, std::shared_ptr<const void>(std::shared_ptr<void>(), bytes_.data()),
                                     {device_, {}}));
  LATHE_ASSIGN(context_, Context::create(engine_));
  load_ms_ = milliseconds_since(start);
  LATHE_ASSIGN(queue_, device_->make_queue());
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue_));
  const plan::Plan& plan = engine_->plan();
  for (size_t i = 0; i < plan.bindings.size(); ++i) {
    const plan::TensorDesc& tensor = plan.tensors[plan.bindings[i].tensor];
    if (plan.bindings[i].is_input) {
      Dims dims;
      for (size_t d = 0; d < tensor.dims.size(); ++d) {
        const auto symbol = tensor.dims[d].as_symbol();
        dims.push_back(symbol ? plan.profiles[0].symbols[*symbol].opt : tensor.dims[d].as_constant().value_or(1));
      }
      LATHE_TRY(context_->set_input_dims(i, dims));
    }
  }
  LATHE_TRY(context_->memory_bytes());  // sets shapes up
  for (size_t i = 0; i < plan.bindings.size(); ++i) {
    const auto kept = plan.bindings[i].is_input ? std::nullopt : plan::aliased_input(plan, static_cast<uint32_t>(i));
    if (kept) {  // caches stay where they are
      addresses_.push_back(addresses_[*kept]);
    } else {
      LATHE_ASSIGN(DeviceMemory memory, device_->allocate(context_->bytes(i)));
      const DType dtype = plan.tensors[plan.bindings[i].tensor].dtype;
      if (plan.bindings[i].is_input)
        LATHE_TRY(fill_randomly(*device_, *queue_, memory, dtype, static_cast<uint32_t>(i + 1)));
      addresses_.push_back(memory.data());
      memory_.push_back(std::move(memory));
    }
    LATHE_TRY(context_->set_address(i, addresses_.back()));
  }
  return device_->wait(*queue_);
}

Result<Timings> Subject::time(double seconds) {
  auto start = Clock::now();
  LATHE_TRY(context_->run());
  first_ms_ = load_ms_ + milliseconds_since(start);
  for (int i = 0; i < 5; ++i) LATHE_TRY(context_->run());
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 10 || milliseconds_since(begin) < seconds * 1e3) {
    start = Clock::now();
    LATHE_TRY(context_->run());
    times.push_back(milliseconds_since(start));
  }
  std::sort(times.begin(), times.end());
  Timings timings{times[times.size() / 2], times[0], times[times.size() / 2], times.size()};
  if (device_->is_host()) return timings;
  std::vector<double> streams;
  constexpr double kRoundMs = 50, kLeastMs = 0.005;
  const int runs = std::max(1, static_cast<int>(kRoundMs / std::max(timings.median_ms, kLeastMs)));
  for (int round = 0; round < 11; ++round) {
    LATHE_TRY(context_->run());
    start = Clock::now();
    for (int i = 0; i < runs; ++i) LATHE_TRY(context_->enqueue(nullptr));
    LATHE_TRY(context_->run());
    streams.push_back(milliseconds_since(start) / (runs + 1));
  }
  std::sort(streams.begin(), streams.end());
  timings.stream_ms = streams[streams.size() / 2];
  return timings;
}

std::string Subject::describe(const Timings& timings) const {
  return fmt::format(
      "{}: {:.3f} ms a run ({:.3f} at least, {:.3f} in a stream, {} runs); {} steps; build {:.0f} ms, tuned {}, cached "
      "{}; load {:.1f} ms, first result {:.1f} ms",
      name_, timings.median_ms, timings.min_ms, timings.stream_ms, timings.runs, engine_->plan().steps.size(),
      build_ms_, report_.tuned, report_.from_cache, load_ms_, first_ms_);
}

std::string Subject::to_json(const Timings& timings) const {
  size_t evaluated = 0;
  for (const plan::Step& step : engine_->plan().steps) evaluated += step.is<plan::Evaluation>();
  const nlohmann::ordered_json json = {{"model", name_},
                                       {"target", engine_->plan().target},
                                       {"median_ms", timings.median_ms},
                                       {"min_ms", timings.min_ms},
                                       {"stream_ms", timings.stream_ms},
                                       {"steps", engine_->plan().steps.size()},
                                       {"steps_on_host", device_->is_host() ? 0 : evaluated},
                                       {"build_ms", build_ms_},
                                       {"tuned", report_.tuned},
                                       {"from_cache", report_.from_cache},
                                       {"load_ms", load_ms_},
                                       {"first_ms", first_ms_},
                                       {"weights_bytes", report_.weights_bytes}};
  return json.dump();
}

// All outputs' bytes, one after the other.
Result<std::vector<std::byte>> Subject::outputs() {
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue_));
  std::vector<std::byte> all;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (engine_->plan().bindings[i].is_input) continue;
    const size_t at = all.size();
    all.resize(at + context_->bytes(i));
    LATHE_TRY(device_->download(all.data() + at, addresses_[i], context_->bytes(i), *queue_));
  }
  return all;
}

Result<> Subject::check_repeat(int runs) {
  LATHE_TRY(context_->run());
  LATHE_ASSIGN(const std::vector<std::byte> first, outputs());
  for (int i = 1; i < runs; ++i) {
    LATHE_TRY(context_->run());
    LATHE_ASSIGN(const std::vector<std::byte> again, outputs());
    if (again != first) return fail(ErrorCode::execution_failed, "run {} of {} gave other bits", i, runs);
  }
  std::printf("%d runs gave equal bits\n", runs);
  return {};
}

Result<> Subject::print_steps() {
  constexpr int kRuns = 20;
  std::map<const plan::Step*, double> by_step;
  context_->hooks.profiler = [&](const plan::Step& step, double ms) { by_step[&step] += ms / kRuns; };
  for (int i = 0; i < kRuns; ++i) LATHE_TRY(context_->run());
  context_->hooks.profiler = nullptr;
  std::vector<std::pair<double, const plan::Step*>> order;
  std::map<std::string, double> by_kernel;
  for (const auto& [step, ms] : by_step) {
    order.emplace_back(ms, step);
    by_kernel[std::string(step->kernel()) + (step->op.empty() ? "" : " " + step->op)] += ms;
  }
  std::sort(order.rbegin(), order.rend());
  for (const auto& [kernel, ms] : by_kernel) std::printf("  %8.3f ms  %s\n", ms, kernel.c_str());
  for (size_t i = 0; i < std::min<size_t>(order.size(), 40); ++i) {
    const plan::Step& step = *order[i].second;
    const plan::TensorDesc& out = engine_->plan().tensors[step.outputs[0]];
    std::printf("  %7.3f ms  tuned %7.3f  %-10s %-22s %-40s %s\n", order[i].first, step.milliseconds,
                std::string(step.kernel()).c_str(), to_string(out.dims).c_str(), step.tactic.c_str(),
                step.name.substr(0, 70).c_str());
  }
  return {};
}

}  // namespace lathe::bench
