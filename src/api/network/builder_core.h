// SPDX-License-Identifier: Apache-2.0
// What a builder shares with what it makes, and what therefore outlives it.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/network/optimization_profile.h"
#include "api/registry_report.h"
#include "api/report.h"
#include "api/settings.h"
#include "base/processors.h"
#include "plugin/registry.h"

namespace lathe::api {

struct BuilderCore {
  explicit BuilderCore(nv::ILogger* logger) : reporter(std::make_shared<Reporter>(logger)) {}

  Entry entry() { return {*reporter, use}; }

  std::shared_ptr<Reporter> reporter;
  Exclusive use{"builder"};
  plugin::Registry registry{&plugin::global_registry(), registry_report(reporter), logger_finder()};
  SettingNotices notices;                       // of the builder
  std::atomic<nv::IBuilder*> builder{nullptr};  // null once the application deleted it
  nv::IGpuAllocator* allocator = nullptr;
  int32_t max_threads = allowed_cpus();  // unless the application says how many
  std::vector<std::unique_ptr<OptimizationProfile>> profiles;
  std::string last_report;  // JSON of the last build
};

}  // namespace lathe::api
