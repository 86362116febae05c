// SPDX-License-Identifier: Apache-2.0
#include "tuning/modules.h"

#include <algorithm>

namespace lathe {

Result<Modules::Module> Modules::find(const std::string& source) {
  if (!compiler_) return fail(ErrorCode::no_tactic, "this build has no compiler for device code");
  std::promise<Result<Module>> mine;
  std::unique_lock lock(mutex_);
  const auto [it, is_first] = modules_.try_emplace(source);
  if (is_first) it->second = mine.get_future().share();
  const std::shared_future<Result<Module>> module = it->second;
  lock.unlock();
  if (!is_first) return module.get();
  try {
    mine.set_value(compile(source));
  } catch (...) {  // others who wait are told
    mine.set_exception(std::current_exception());
  }
  return module.get();
}

Result<Modules::Module> Modules::compile(const std::string& source) const {
  LATHE_ASSIGN(std::vector<std::byte> bytes, compiler_->compile(source));
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
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
    if (it != step.modules.end()) continue;
    step.modules.push_back(std::move(module));
    step.sources.push_back(each.source);
  }
  return step;
}

}  // namespace lathe
