// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.h"

#include <dlfcn.h>

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace lathe {

namespace fs = std::filesystem;

// /proc/self/maps has its absolute path; the name that dladdr() gives may be
// relative to a folder that is no longer the working directory.
fs::path file_of(const void* address) {
  const auto here = reinterpret_cast<uintptr_t>(address);
  fs::path found;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), &std::fclose);
  for (char line[PATH_MAX + 100]; maps && found.empty() && std::fgets(line, sizeof(line), maps.get());) {
    uintptr_t begin = 0, end = 0;
    int path = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &path) == 2 && path > 0 &&
        begin <= here && here < end)  // without a path where code was moved to anonymous memory
      found = std::string(line + path, std::strcspn(line + path, "\n"));
  }
  Dl_info info{};
  if (!found.is_absolute() && ::dladdr(address, &info) != 0 && info.dli_fname) found = info.dli_fname;
  std::error_code error;
  const fs::path whole = fs::canonical(found, error);
  return error ? found : whole;
}

fs::path own_file() { return file_of(reinterpret_cast<const void*>(&own_file)); }

}  // namespace lathe
