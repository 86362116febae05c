// SPDX-License-Identifier: Apache-2.0
#include "device/family.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace lathe {

#define LATHE_DEVICE(name)      \
  namespace name {              \
  const DeviceFamily& family(); \
  }
#include "device/families.def"
#undef LATHE_DEVICE

std::span<const DeviceFamily* const> device_families() {
  static const auto families = std::to_array<const DeviceFamily*>({
#define LATHE_DEVICE(name) &name::family(),
#include "device/families.def"
#undef LATHE_DEVICE
  });
  return families;
}

const DeviceFamily* find_family(std::string_view target) {
  const std::string_view name = target.substr(0, target.find_first_of("-:"));
  for (const DeviceFamily* family : device_families())
    if (family->name() == name) return family;
  return nullptr;
}

Result<const CodeImage*> choose_image(const CodeModule& module, std::string_view target) {
  if (const CodeImage* image = find_binary(module, target)) return image;
  const DeviceFamily* family = find_family(target);
  return family ? family->adaptable_image(module, target) : fail(no_image(module, target));
}

Result<std::string> resolve_target(std::string_view name) {
  for (const DeviceFamily* family : device_families()) {
    LATHE_ASSIGN(std::optional<std::string> resolved, family->resolve(name));
    if (resolved) return *std::move(resolved);
  }
  return fail(ErrorCode::config_invalid, "target '{}' is not known; see setTarget() in lathe.h", name);
}

DefaultTarget default_target() {
  if (const char* wanted = std::getenv("LATHE_TARGET"); wanted && *wanted) {
    Result<std::string> resolved = resolve_target(wanted);
    return {resolved ? *std::move(resolved) : wanted, "LATHE_TARGET names it"};
  }
  std::string missing;
  const DeviceFamily* host = nullptr;
  for (const DeviceFamily* family : device_families()) {
    if (family->is_host()) {
      if (!host) host = family;
      continue;
    }
    const Result<> found = family->find_device();
    if (found) return {std::string(family->name()), "there is such a device"};
    if (missing.empty()) missing = found.error().message;
  }
  return {std::string(host->name()), std::move(missing)};
}

bool is_device_memory(const void* address) {
  return address && std::ranges::any_of(device_families(),
                                        [&](const DeviceFamily* family) { return family->is_device_memory(address); });
}

}  // namespace lathe
