// SPDX-License-Identifier: Apache-2.0
#include "tuning/backend.h"

#include <array>

namespace lathe {

#define LATHE_DEVICE(name)  \
  namespace name {          \
  const Backend& backend(); \
  }
#include "device/families.def"
#undef LATHE_DEVICE

std::span<const Backend* const> backends() {
  static const auto backends = std::to_array<const Backend*>({
#define LATHE_DEVICE(name) &name::backend(),
#include "device/families.def"
#undef LATHE_DEVICE
  });
  return backends;
}

const Backend* find_backend(std::string_view target) {
  const std::string_view name = target.substr(0, target.find_first_of("-:"));
  for (const Backend* backend : backends())
    if (backend->name() == name) return backend;
  return nullptr;
}

Result<BackendBuild> prepare_build(std::string_view target, const BackendSettings& settings) {
  const Backend* backend = find_backend(target);
  if (!backend) return fail(ErrorCode::config_invalid, "target '{}' is not known; see setTarget() in lathe.h", target);
  return backend->prepare(target, settings);
}

}  // namespace lathe
