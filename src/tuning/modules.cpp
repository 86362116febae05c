// SPDX-License-Identifier: Apache-2.0
#include "tuning/modules.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

namespace lathe {

Result<Modules::Module> Modules::find(const std::string& source) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = modules_.find(source); it != modules_.end()) return it->second;
  }
  if (!compiler_) return fail(ErrorCode::no_tactic, "this build has no compiler for device code");
  Result<std::vector<std::byte>> bytes = compiler_->compile(source);
  Result<Module> module = bytes ? Result<Module>(std::make_shared<const std::vector<std::byte>>(*std::move(bytes)))
                                : Result<Module>(tl::unexpected(std::move(bytes).error()));
  const std::lock_guard lock(mutex_);
  return modules_.emplace(source, std::move(module)).first->second;
}

Result<> Modules::compile(size_t count, const std::function<std::vector<std::string>(size_t)>& sources_of,
                          double seconds, const std::function<Result<>(double)>& progress) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  const auto work = [&](const auto& after_each) {
    for (size_t i; !stopped && (i = next++) < count && Clock::now() < end; after_each(i))
      for (const std::string& source : sources_of(i)) (void)find(source);
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  std::exception_ptr failure;  // of a thread, where it would end the program: want of memory
  const auto help = [&] {
    try {
      work([](size_t) {});
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure = std::current_exception();
      stopped = true;
    }
  };
  for (size_t i = 1; i < std::min(cores, count); ++i) threads.emplace_back(help);
  Result<> told;
  work([&](size_t i) {
    if (told) told = progress(static_cast<double>(i) / static_cast<double>(count));
    if (!told) stopped = true;
  });
  threads.clear();
  if (failure) std::rethrow_exception(failure);
  return told;
}

std::vector<std::span<const std::byte>> StepModules::code() const {
  std::vector<std::span<const std::byte>> spans;
  for (const Modules::Module& module : modules) spans.emplace_back(*module);
  return spans;
}

Result<StepModules> modules_of(const Emission& emission, Modules& modules) {
  StepModules step;
  for (const SourceLaunch& each : emission.launches) {
    if (!each.launch.library.empty()) {
      step.launches.push_back(each.launch);
      continue;
    }
    LATHE_ASSIGN(Modules::Module module, modules.find(each.source));
    const auto it = std::find(step.modules.begin(), step.modules.end(), module);
    step.launches.push_back(each.launch);
    step.launches.back().code = static_cast<uint32_t>(it - step.modules.begin());
    if (it == step.modules.end()) step.modules.push_back(std::move(module));
  }
  return step;
}

}  // namespace lathe
