// SPDX-License-Identifier: Apache-2.0
#include "api/entry_point.h"

#include <atomic>

namespace lathe::api {
namespace {

std::atomic<nv::ILogger*> g_first_logger{nullptr};

}  // namespace

// Programs compiled for another generation lay their classes out differently.
Result<nv::ILogger*> check_caller(void* logger, int32_t version) {
  auto* typed = static_cast<nv::ILogger*>(logger);
  if (!typed) return fail(ErrorCode::invalid_argument, "the logger is null");
  if (version / 10000 != NV_TENSORRT_MAJOR)
    return fail(ErrorCode::invalid_argument,
                "the program was compiled for interface version {}, this library has {}; compile it anew", version,
                NV_TENSORRT_VERSION);
  nv::ILogger* none = nullptr;
  g_first_logger.compare_exchange_strong(none, typed);
  return typed;
}

nv::ILogger* first_logger() noexcept { return g_first_logger.load(); }

}  // namespace lathe::api
