// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.h"

#include <dlfcn.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace lathe {

namespace fs = std::filesystem;

// /proc/self/maps has its absolute path; the name that dladdr() gives may be
// relative to a folder that is no longer the working directory.
fs::path file_of(const void* address) {
  const auto here = reinterpret_cast<uintptr_t>(address);
  fs::path found;
  if (std::FILE* maps = std::fopen("/proc/self/maps", "re")) {
    char* line = nullptr;
    size_t capacity = 0;
    for (ssize_t length; found.empty() && (length = ::getline(&line, &capacity, maps)) > 0;) {
      uintptr_t begin = 0, end = 0;
      int path = 0;
      if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &path) == 2 && path > 0 &&
          path < length && begin <= here && here < end)  // without a path where code was moved to anonymous memory
        found = std::string(line + path, line + length - 1);
    }
    std::free(line);
    std::fclose(maps);
  }
  Dl_info info{};
  if (!found.is_absolute() && ::dladdr(address, &info) != 0 && info.dli_fname) found = info.dli_fname;
  std::error_code error;
  const fs::path whole = fs::canonical(found, error);
  return error ? found : whole;
}

fs::path own_file() { return file_of(reinterpret_cast<const void*>(&own_file)); }

}  // namespace lathe
