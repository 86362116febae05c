// SPDX-License-Identifier: Apache-2.0
#include "api/builder/hardware.h"

#include "device/hardware.h"

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

void note_hardware(const BuilderConfig& settings, const BackendBuild& backend, plan::Amendments& amendments, Log& log) {
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
  amendments.hardware_compatibility = static_cast<HardwareCompatibility>(backend.portability);
  if (device) amendments.hardware = device->hardware();
}

}  // namespace lathe::api
