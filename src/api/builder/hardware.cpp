// SPDX-License-Identifier: Apache-2.0
#include "api/builder/hardware.h"

#include "device/hardware.h"
#include "plan/amend.h"

namespace lathe::api {

using nv::HardwareCompatibilityLevel;
using plan::HardwareCompatibility;

Portability portability_of(const BuilderConfig& settings) {
  switch (settings.getHardwareCompatibilityLevel()) {
    case HardwareCompatibilityLevel::kNONE:
      break;
    case HardwareCompatibilityLevel::kAMPERE_PLUS:
      return Portability::ampere_plus;
    case HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY:
      return Portability::same_capability;
  }
  return Portability::none;
}

Result<> apply_hardware(const BuilderConfig& settings, const BackendBuild& backend, std::vector<std::byte>& plan,
                        Log& log) {
  static_assert(static_cast<int>(HardwareCompatibilityLevel::kAMPERE_PLUS) ==
                static_cast<int>(HardwareCompatibility::ampere_plus));
  static_assert(static_cast<int>(HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY) ==
                static_cast<int>(HardwareCompatibility::same_compute_capability));
  const auto* device = dynamic_cast<const HardwareDevice*>(backend.device.get());
  if (backend.portability == Portability::none && portability_of(settings) != Portability::none)
    log.print(
        Severity::warning,
        "IBuilderConfig::setHardwareCompatibilityLevel has no effect: levels are of GPUs, and the plan is for '{}'",
        backend.target.name);
  const auto level = static_cast<HardwareCompatibility>(backend.portability);
  if (level == HardwareCompatibility::none && !device) return {};
  return plan::set_hardware(plan, level, device ? device->hardware() : HardwareProperties());
}

}  // namespace lathe::api
