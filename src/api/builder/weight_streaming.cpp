// SPDX-License-Identifier: Apache-2.0
#include "api/builder/weight_streaming.h"

#include "device/family.h"

namespace lathe::api {

void note_weight_streaming(const BuilderConfig& settings, plan::Plan& plan, Log& log) {
  if (!settings.has(nv::BuilderFlag::kWEIGHT_STREAMING)) return;
  const DeviceFamily* const family = find_family(plan.target);
  if (family && family->is_host()) {
    log.print(Severity::warning,
              "BuilderFlag::kWEIGHT_STREAMING has no effect: the plan is for '{}', whose weights lie in the host's "
              "memory and are mapped from the plan's file",
              plan.target);
  } else if (plan.refit.kind != plan::RefitKind::none) {
    log.print(Severity::warning,
              "BuilderFlag::kWEIGHT_STREAMING has no effect: weights that can be replaced stay on the device; build "
              "without flags of refitting");
  } else {
    plan.metadata.emplace_back(plan::kWeightStreamingKey, "true");
  }
}

}  // namespace lathe::api
