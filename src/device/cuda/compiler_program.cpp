// SPDX-License-Identifier: Apache-2.0
// Where lathe-compiler is.
#include <dlfcn.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "device/cuda/toolchain.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "lathe-compiler";
// Relative to the folder of the file that holds this code: the library, installed or in a build tree, or a program that
// is linked statically.
constexpr const char* kFolders[] = {".", "../libexec/lathe", "../../libexec/lathe", "../bin", "../../bin"};

// The file that this code was loaded from. /proc/self/maps has its absolute path; the name that dladdr() gives may be
// relative to a folder that is no longer the working directory.
fs::path library() {
  const auto here = reinterpret_cast<uintptr_t>(&library);
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
  if (!found.is_absolute() && ::dladdr(reinterpret_cast<const void*>(here), &info) != 0 && info.dli_fname)
    found = info.dli_fname;
  std::error_code error;
  const fs::path whole = fs::canonical(found, error);
  return error ? found : whole;
}

}  // namespace

Result<std::string> compiler_program(const std::optional<std::string>& given) {
  if (given) return *given;
  if (const char* variable = std::getenv("LATHE_COMPILER")) return variable;
  const fs::path folder = library().parent_path();
  for (const char* below : kFolders)
    if (const std::string path = (folder / below / kProgram).lexically_normal(); ::access(path.c_str(), X_OK) == 0)
      return path;
  return fail(ErrorCode::invalid_state, "{} is neither in '{}' nor in bin or libexec/lathe beside it", kProgram,
              folder.string());
}

}  // namespace lathe::cuda
