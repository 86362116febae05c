// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/shared_library.h"

#include <dlfcn.h>
#include <link.h>

namespace lathe::cuda {
namespace {

std::string path_of(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name || !*map->l_name) return name;
  return map->l_name;
}

}  // namespace

Result<SharedLibrary> SharedLibrary::open(std::span<const std::string> names, ErrorCode code) {
  for (const std::string& name : names)
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD))
      return SharedLibrary(handle, path_of(handle, name));
  std::string reasons;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return SharedLibrary(handle, path_of(handle, name));
    const char* reason = dlerror();
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason ? reason : name);
  }
  return fail(code, "{}", reasons);
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace lathe::cuda
