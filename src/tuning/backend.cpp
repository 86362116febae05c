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

const Backend* find_backend(std::string_view target) {
  static const auto backends = std::to_array<const Backend*>({
#define LATHE_DEVICE(name) &name::backend(),
#include "device/families.def"
#undef LATHE_DEVICE
  });
  const std::string_view name = target.substr(0, target.find_first_of("-:"));
  for (const Backend* backend : backends)
    if (backend->name() == name) return backend;
  return nullptr;
}

}  // namespace lathe
