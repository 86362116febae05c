// SPDX-License-Identifier: Apache-2.0
// What opening cuBLASLt and cuDNN has in common: they are looked for when first asked for, and engines that do not use
// them do without.
#pragma once

#include <mutex>
#include <span>
#include <string>

#include "device/cuda/shared_library.h"

namespace lathe::cuda {

// One library, for messages.
struct LibraryInfo {
  const char* name;      // "cuBLASLt"
  const char* variable;  // environment variable that gives its path
  const char* package;   // that pip installs it from
  const char* versions;  // that can be used: "12 or 13"
};

// Opens the first of `names` that is there.
Result<SharedLibrary> open_library(const LibraryInfo& info, std::span<const std::string> names);
Result<> resolve_symbol(const LibraryInfo& info, const SharedLibrary& library, const char* symbol, void** function);

// What `open` has given once it succeeded: for the rest of the process.
template <class Library, class Open>
Result<const Library*> open_once(std::mutex& mutex, const Library*& opened, Open&& open) {
  const std::lock_guard lock(mutex);
  if (opened) return opened;
  LATHE_ASSIGN(auto library, open());
  return opened = library.release();
}

}  // namespace lathe::cuda
