// SPDX-License-Identifier: Apache-2.0
#include "api/guest/installed.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "NvInferVersion.h"
#include "base/own_file.h"

namespace lathe::api::guest {
namespace {

constexpr const char* kName = NV_TENSORRT_MAJOR < 11 ? "liblathe_lean_10.so.0" : "liblathe_lean.so.0";
constexpr const char* kFolders[] = {".", "../lib", "../../lib"};  // from a library's folder, or a program's

}  // namespace

Result<std::string> installed_lean() {
  if (const char* path = std::getenv("LATHE_LEAN_RUNTIME"); path && *path) return path;
  const std::filesystem::path folder = own_file().parent_path();
  for (const char* below : kFolders)
    if (std::string path = (folder / below / kName).lexically_normal(); ::access(path.c_str(), R_OK) == 0) return path;
  return fail(ErrorCode::library_refused,
              "{} is neither in '{}' nor in ../lib or ../../lib from there: install it there, or name it in the "
              "environment variable "
              "LATHE_LEAN_RUNTIME",
              kName, folder.string());
}

}  // namespace lathe::api::guest
