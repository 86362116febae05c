// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/optional_library.h"

namespace lathe::cuda {

Result<SharedLibrary> open_library(const LibraryInfo& info, std::span<const std::string> names) {
  Result<SharedLibrary> library = SharedLibrary::open(names, ErrorCode::library_missing);
  if (library) return library;
  return fail(
      ErrorCode::library_missing,
      "{} cannot be loaded ({}): install version {} of it (pip install {}), or set {} to its path; engines that "
      "are built without it do not need it",
      info.name, library.error().message, info.versions, info.package, info.variable);
}

Result<> resolve_symbol(const LibraryInfo& info, const SharedLibrary& library, const char* symbol, void** function) {
  *function = library.symbol(symbol);
  if (*function) return {};
  return fail(ErrorCode::library_unsuitable, "'{}' lacks the function {}: install {} {}", library.path(), symbol,
              info.name, info.versions);
}

}  // namespace lathe::cuda
