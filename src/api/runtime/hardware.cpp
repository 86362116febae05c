// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/hardware.h"

#include <string>

#include "device/hardware.h"

namespace lathe::api {

void warn_of_other_hardware(const plan::PlanHeader& header, const Device& device, Log& log) {
  const auto* const other = dynamic_cast<const HardwareDevice*>(&device);
  const HardwareProperties& built = header.hardware;
  if (!other || !built.is_known() || header.hardware_compatibility != plan::HardwareCompatibility::none) return;
  const HardwareProperties here = other->hardware();
  const auto shared = [](const HardwareProperties& p) {
    return fmt::format("{} bytes for a block, {} bytes on a multiprocessor", p.block_shared_bytes, p.core_shared_bytes);
  };
  const auto compare = [&](const char* property, const std::string& was, const std::string& is) {
    if (was != is)
      log.print(
          Severity::warning,
          "the plan was tuned on a device with another {}: {} there, {} here. It runs, perhaps slower than one that "
          "is built on this device",
          property, was, is);
  };
  const auto kind = [](const HardwareProperties& p) { return p.is_integrated ? "integrated" : "discrete"; };
  compare("memory bus width", fmt::format("{} bits", built.memory_bus_bits),
          fmt::format("{} bits", here.memory_bus_bits));
  compare("L2 cache size", fmt::format("{} bytes", built.cache_bytes), fmt::format("{} bytes", here.cache_bytes));
  compare("size of shared memory", shared(built), shared(here));
  compare("texture alignment", fmt::format("{} bytes", built.texture_alignment),
          fmt::format("{} bytes", here.texture_alignment));
  compare("number of multiprocessors", std::to_string(built.cores), std::to_string(here.cores));
  compare("kind of memory", kind(built), kind(here));
}

}  // namespace lathe::api
