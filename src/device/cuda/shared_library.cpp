// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

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

std::optional<std::string> SharedLibrary::find_loaded(std::span<const std::string> names) {
  for (const std::string& name : names)
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
      std::string path = path_of(handle, name);
      dlclose(handle);
      return path;
    }
  return std::nullopt;
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

std::vector<std::string> toolkit_names(const char* variable, const std::vector<std::string>& files) {
  if (const char* path = std::getenv(variable); path && *path) return {path};
  std::vector<std::string> names = files;
  std::vector<std::string> folders = {"/usr/local/cuda"};
  for (const char* home : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(home); folder && *folder) folders.insert(folders.begin(), folder);
  for (const std::string& folder : folders)
    for (const std::string& file : files) names.push_back(folder + "/lib64/" + file);
  return names;
}

}  // namespace lathe::cuda
