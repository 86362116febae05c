// SPDX-License-Identifier: Apache-2.0
// What a builder shares with what it makes, and what therefore outlives it.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/network/optimization_profile.h"
#include "api/registry_report.h"
#include "api/report.h"
#include "api/settings.h"
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
  // As many as there are cores, unless the application says how many.
  static int32_t all_threads() { return static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency())); }
  int32_t max_threads = all_threads();
  std::vector<std::unique_ptr<OptimizationProfile>> profiles;
  std::string last_report;  // JSON of the last build
};

}  // namespace lathe::api
