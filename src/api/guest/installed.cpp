// SPDX-License-Identifier: Apache-2.0
#include "api/guest/installed.h"

#include <unistd.h>

#include <cstdlib>

#include "NvInferVersion.h"
#include "base/own_file.h"

namespace lathe::api::guest {
namespace {

constexpr const char* kName = NV_TENSORRT_MAJOR < 11 ? "liblathe_lean_10.so.0" : "liblathe_lean.so.0";
constexpr const char* kFolders[] = {"", "../lib/", "../../lib/"};  // from a library's folder, or a program's

}  // namespace

Result<std::string> installed_lean() {
  if (const char* path = std::getenv("LATHE_LEAN_RUNTIME"); path && *path) return path;
  if (std::string path = find_near(kFolders, kName, R_OK); !path.empty()) return path;
  return fail(ErrorCode::library_refused,
              "{} is neither in '{}' nor in ../lib or ../../lib from there: install it there, or name it in the "
              "environment variable "
              "LATHE_LEAN_RUNTIME",
              kName, own_folder());
}

}  // namespace lathe::api::guest
