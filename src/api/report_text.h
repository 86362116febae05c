// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/host_memory.h"
#include "api/own_settings.h"

namespace lathe::api {

// Runs `make`, which gives the text of a report as Result<std::string>. Failures are told by lastError() alone.
template <class Make>
nv::IHostMemory* report_text(const char* where, Make&& make) noexcept {
  return guarded(silent(), where, static_cast<nv::IHostMemory*>(nullptr), [&]() -> Result<nv::IHostMemory*> {
    LATHE_ASSIGN(const std::string text, make());
    return HostMemory::of_text(text);
  });
}

}  // namespace lathe::api
