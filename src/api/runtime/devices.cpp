// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/devices.h"

#include "device/family.h"
#include "plan/reader.h"

namespace lathe::api {

void release_devices() {
  for (const DeviceFamily* family : device_families()) family->release();
}

Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(plan));
  LATHE_TRY(plan::check_usable(header, {}));  // before a driver is looked for, which may be missing, too
  if (const DeviceFamily* family = find_family(header.target)) return family->open(cpu_threads);
  return fail(ErrorCode::plan_target, "the plan is for '{}', which this library does not know", header.target);
}

}  // namespace lathe::api
