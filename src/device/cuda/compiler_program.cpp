// SPDX-License-Identifier: Apache-2.0
// Where lathe-compiler is.
#include <unistd.h>

#include <cstdlib>

#include "base/own_file.h"
#include "device/cuda/toolchain.h"

namespace lathe::cuda {
namespace {

constexpr const char* kProgram = "lathe-compiler";
// Relative to the folder of the file that holds this code: the library, installed or in a build tree, or a program that
// is linked statically.
constexpr const char* kFolders[] = {"", "../libexec/lathe/", "../../libexec/lathe/", "../bin/", "../../bin/"};

}  // namespace

Result<std::string> compiler_program(const std::optional<std::string>& given) {
  if (given) return *given;
  if (const char* variable = std::getenv("LATHE_COMPILER")) return variable;
  if (std::string path = find_near(kFolders, kProgram, X_OK); !path.empty()) return path;
  return fail(ErrorCode::invalid_state, "{} is neither in '{}' nor in bin or libexec/lathe beside it", kProgram,
              own_folder());
}

}  // namespace lathe::cuda
