// SPDX-License-Identifier: Apache-2.0
// What the functions that make the first objects have in common.
#pragma once

#include "api/report.h"

namespace lathe::api {

// The logger that a program gave and the interface version that it was compiled for, checked.
Result<nv::ILogger*> check_caller(void* logger, int32_t version);
// The first logger that any program gave in this process; null when there was none.
nv::ILogger* first_logger() noexcept;

// Runs `make` with the checked logger; on failure one report to that logger.
template <class Make>
void* create(const char* where, void* logger, int32_t version, Make&& make) noexcept {
  const Reporter reporter(static_cast<nv::ILogger*>(logger));
  return guarded(reporter, where, static_cast<void*>(nullptr), [&]() -> Result<void*> {
    LATHE_ASSIGN(nv::ILogger * typed, check_caller(logger, version));
    return make(typed);
  });
}

}  // namespace lathe::api
