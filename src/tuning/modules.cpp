// SPDX-License-Identifier: Apache-2.0
#include "tuning/modules.h"

#include <algorithm>

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
