// SPDX-License-Identifier: Apache-2.0
// What the functions that make the first objects have in common.
#pragma once

#include "api/report.h"

namespace lathe::api {

// Whether the program's classes are laid out as this library's: by the version that it was compiled for.
bool is_own_generation(int32_t version) noexcept;
// Null and one report. The logger is called as programs of that version lay theirs out; not at all where that is
// unknown.
void* refuse_caller(const char* where, void* logger, int32_t version) noexcept;
// The logger that a program gave, which is kept as the first one where there was none.
Result<nv::ILogger*> take_logger(void* logger);
// The first logger that any program gave in this process; null when there was none.
nv::ILogger* first_logger() noexcept;

// Runs `make` with the checked logger; on failure one report to that logger.
template <class Make>
void* create(const char* where, void* logger, int32_t version, Make&& make) noexcept {
  if (!is_own_generation(version)) return refuse_caller(where, logger, version);
  const Reporter reporter(static_cast<nv::ILogger*>(logger));
  return guarded(reporter, where, static_cast<void*>(nullptr), [&]() -> Result<void*> {
    LATHE_ASSIGN(nv::ILogger * typed, take_logger(logger));
    return make(typed);
  });
}

}  // namespace lathe::api
