// SPDX-License-Identifier: Apache-2.0
// What functions of lathe.h that change settings have in common.
#pragma once

#include "api/report.h"

namespace lathe::api {

// Reports to lastError() alone.
inline const Reporter& silent() {
  static const Reporter reporter(static_cast<nv::ILogger*>(nullptr));
  return reporter;
}

inline bool check_threads(int32_t threads) noexcept {
  return guarded(silent(), "setCpuThreads", [&]() -> Result<> {
    if (threads < 0) return fail(ErrorCode::config_invalid, "{} threads; 0 means all", threads);
    return {};
  });
}

}  // namespace lathe::api
