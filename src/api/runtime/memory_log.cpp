// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/memory_log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <numeric>

#include "base/memory_tally.h"
#include "runtime/engine.h"

namespace lathe::api {
namespace {

int64_t mebibytes(size_t bytes) { return static_cast<int64_t>(bytes >> 20); }

void log_change_of(std::string_view what, size_t host_before, size_t host, size_t device_before, size_t device,
                   Log& log) {
  log.print(Severity::info, "[MemUsageChange] {}: CPU {:+}, GPU {:+}, now: CPU {}, GPU {} (MiB)", what,
            mebibytes(host) - mebibytes(host_before), mebibytes(device) - mebibytes(device_before), mebibytes(host),
            mebibytes(device));
}

// What a context keeps there besides what it works in.
size_t host_bytes(const plan::Plan& plan) {
  size_t operands = 0;
  for (const plan::Step& step : plan.steps) operands += step.inputs.size() + step.outputs.size();
  constexpr size_t kBuffer = sizeof(size_t) + sizeof(int64_t) + sizeof(std::byte*);  // place, size, place for now
  return operands * sizeof(TensorArg) + plan.buffers.size() * kBuffer + plan.symbols.size() * sizeof(int64_t);
}

}  // namespace

ManagedMemory::ManagedMemory(Log& log) : log_(log), host_(host_tally().live()), device_(device_tally().live()) {
  host_tally().restart();
  device_tally().restart();
}

void ManagedMemory::log_change(std::string_view doing) const {
  log_change_of(fmt::format("TensorRT-managed allocation in {}", doing), host_, host_tally().live(), device_,
                device_tally().live(), log_);
}

void ManagedMemory::log_peak() const {
  log_.print(Severity::info,
             "[MemUsageStats] Peak memory usage of TRT CPU/GPU memory allocators: CPU {} MiB, GPU {} MiB",
             mebibytes(host_tally().peak()), mebibytes(device_tally().peak()));
}

size_t resident_bytes() {
  std::ifstream pages("/proc/self/statm");
  size_t total = 0, resident = 0;
  pages >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

std::optional<size_t> available_bytes() {
  std::ifstream lines("/proc/meminfo");
  std::string word;
  for (size_t kibibytes = 0; lines >> word;)
    if (word == "MemAvailable:" && lines >> kibibytes) return kibibytes << 10;
  return std::nullopt;
}

void warn_of_host_memory(size_t needed, std::optional<size_t> available, Log& log) {
  if (!available || needed <= *available) return;
  log.print(Severity::warning,
            "the build needs about {} MiB of the host's memory for its weights, and the system has {} MiB: it may end "
            "this process. Free some memory first, or keep the weights in a file beside the model",
            needed >> 20, *available >> 20);
}

void warn_of_eager_loading(const Device& device, Log& log) {
  const char* mode = std::getenv("CUDA_MODULE_LOADING");
  if (device.is_host() || !mode || std::string_view(mode) != "EAGER") return;
  static std::atomic<bool> has_warned = false;
  if (has_warned.exchange(true)) return;
  log.print(
      Severity::warning,
      "CUDA_MODULE_LOADING is EAGER: all device code is loaded when an engine is, used or not, which takes memory "
      "and time. Unset the variable: drivers load code when it is first used (LAZY)");
}

void log_start(const Device& device, size_t resident_before, Log& log) {
  const std::optional<MemoryUse> use = log.accepts(Severity::info) ? device.memory_use() : std::nullopt;
  if (use) log_change_of("Init CUDA", resident_before, resident_bytes(), use->used, use->used, log);
}

void log_needs(std::span<const std::byte> plan, const std::shared_ptr<Device>& device, Log& log) {
  if (!log.accepts(Severity::info)) return;
  EngineOptions options;
  if (device && device->is_host()) options.threads = device->threads();
  options.read.borrows_weights = true;
  options.read.verify_weights = false;
  const auto engine = Engine::load(plan, nullptr, options);
  if (!engine) return log.print(Severity::verbose, "what contexts need is not known: {}", engine.error().to_string());
  const plan::Plan& loaded = (*engine)->plan();
  size_t persistent = 0, scratch = 0, activations = 0;
  bool is_limited = true;
  for (size_t i = 0; i < loaded.profiles.size(); ++i) {
    const MemoryLimit* limit = (*engine)->memory_limit(i);
    is_limited &= limit != nullptr;
    if (!limit) continue;
    persistent = std::max(persistent, std::accumulate(limit->dynamic.begin(), limit->dynamic.end(), size_t{0}));
    scratch = std::max(scratch, limit->most_scratch);
    activations = std::max(activations, limit->activations);
  }
  log.print(Severity::info, "Total Host Persistent Memory: {} bytes", host_bytes(loaded));
  if (is_limited) {
    log.print(Severity::info, "Total Device Persistent Memory: {} bytes", persistent);
    log.print(Severity::info, "Max Scratch Memory: {} bytes", scratch);
    log.print(Severity::info, "Total Activation Memory: {} bytes", activations);
  } else {
    log.print(Severity::info, "Total Activation Memory: not known before shapes are, which no profile limits");
  }
  log.print(Severity::info, "Total Weights Memory: {} bytes", loaded.weights_bytes() + loaded.stripped_bytes());
}

}  // namespace lathe::api
