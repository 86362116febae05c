// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace lathe {

// /proc/self/maps has its absolute path; the name that dladdr() gives may be
// relative to a folder that is no longer the working directory.
std::string file_of(const void* address) {
  const auto here = reinterpret_cast<uintptr_t>(address);
  std::string found;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), &std::fclose);
  for (char line[PATH_MAX + 100]; maps && found.empty() && std::fgets(line, sizeof(line), maps.get());) {
    uintptr_t begin = 0, end = 0;
    int path = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &path) == 2 && path > 0 &&
        begin <= here && here < end)  // without a path where code was moved to anonymous memory
      found.assign(line + path, std::strcspn(line + path, "\n"));
  }
  Dl_info info{};
  if (!found.starts_with('/') && ::dladdr(address, &info) != 0 && info.dli_fname) found = info.dli_fname;
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(found.c_str(), nullptr), &std::free);
  if (whole) found = whole.get();
  return found;
}

std::string own_folder() {
  std::string file = file_of(reinterpret_cast<const void*>(&own_folder));
  file.resize(file.find_last_of('/') == std::string::npos ? 0 : file.find_last_of('/'));
  return file;
}

std::string find_near(std::span<const char* const> folders, const char* name, int use) {
  std::string own = file_of(reinterpret_cast<const void*>(&own_folder));
  const size_t slash = own.find_last_of('/');
  if (slash == std::string::npos) return {};  // not to be taken for a file in the root folder
  own.resize(slash + 1);
  for (const char* folder : folders)
    if (std::string path = own + folder + name; ::access(path.c_str(), use) == 0) return path;
  return {};
}

}  // namespace lathe
