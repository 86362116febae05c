// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/devices.h"

#include "device/family.h"
#include "plan/reader.h"
#include "plan/variants.h"

namespace lathe::api {

void release_devices() {
  for (const DeviceFamily* family : device_families()) family->release();
}

Result<size_t> choose_variant(const plan::PlanHeader& header, int cpu_threads) {
  const std::vector<std::string> targets = plan::targets_of(header);
  if (targets.size() == 1) return 0;
  std::string reasons;
  for (size_t i = 0; i < targets.size(); ++i) {
    const DeviceFamily* const family = find_family(targets[i]);
    const auto runs = [&]() -> Result<> {
      if (!family) return fail(ErrorCode::plan_target, "this library does not know it");
      LATHE_ASSIGN(const std::shared_ptr<Device> device, family->open(cpu_threads));
      return device->check_target(targets[i]);
    };
    const Result<> result = runs();
    if (result) return i;
    reasons += fmt::format("{}'{}': {}", i > 0 ? "; " : "", targets[i], result.error().message);
  }
  return fail(ErrorCode::plan_target, "none of the plan's {} variants runs here: {}", targets.size(), reasons);
}

Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(plan));
  LATHE_TRY(plan::check_usable(header, {}));  // before a driver is looked for, which may be missing, too
  if (const DeviceFamily* family = find_family(header.target)) return family->open(cpu_threads);
  return fail(ErrorCode::plan_target, "the plan is for '{}', which this library does not know", header.target);
}

}  // namespace lathe::api
