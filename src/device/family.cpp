// SPDX-License-Identifier: Apache-2.0
#include "device/family.h"

#include <array>

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

Result<DeviceCode> choose_code(const CodeModule& module, std::string_view target) {
  if (const CodeImage* image = find_binary(module, target)) return DeviceCode{image->bytes, nullptr};
  const DeviceFamily* family = find_family(target);
  return family ? family->adapt_code(module, target) : fail(no_image(module, target));
}

Result<std::string> resolve_target(std::string_view name) {
  for (const DeviceFamily* family : device_families()) {
    LATHE_ASSIGN(std::optional<std::string> resolved, family->resolve(name));
    if (resolved) return *std::move(resolved);
  }
  return fail(ErrorCode::config_invalid, "target '{}' is not known; see setTarget() in lathe.h", name);
}

}  // namespace lathe
