// SPDX-License-Identifier: Apache-2.0
#include "api/entry_point.h"

#include <atomic>

#include "api/other_generation.h"

namespace lathe::api {
namespace {

std::atomic<nv::ILogger*> g_first_logger{nullptr};

constexpr int32_t kOwnMajor = NV_TENSORRT_MAJOR;
constexpr int32_t kNewestMajor = 11;  // whose loggers are known
constexpr bool has_versioned_logger(int32_t major) { return major >= 11; }

// Before version 10, a number held one digit less.
int32_t major_of(int32_t version) noexcept { return version / (version < 10000 ? 1000 : 10000); }

// A logger that a program of the other generation has.
class LoggerOfCaller final : public nv::ILogger {
 public:
  explicit LoggerOfCaller(void* logger) : logger_(static_cast<OtherLogger*>(logger)) {}
  // Its class is another program's, of which UndefinedBehaviorSanitizer knows nothing.
  __attribute__((no_sanitize("vptr"))) void log(Severity severity, const char* text) noexcept override {
    if (logger_) logger_->log(severity, text);
  }

 private:
  OtherLogger* logger_;
};

}  // namespace

bool is_own_generation(int32_t version) noexcept { return major_of(version) == kOwnMajor; }

void* refuse_caller(const char* where, void* logger, int32_t version) noexcept {
  const int32_t major = major_of(version);
  LoggerOfCaller other(logger);
  nv::ILogger* readable = nullptr;
  if (major > 0 && major <= kNewestMajor)
    readable =
        has_versioned_logger(major) == has_versioned_logger(kOwnMajor) ? static_cast<nv::ILogger*>(logger) : &other;
  const Reporter reporter(readable);
  return guarded(reporter, where, static_cast<void*>(nullptr), [&]() -> Result<void*> {
    return fail(
        ErrorCode::invalid_argument,
        "the program was compiled for interface version {}, whose classes are laid out differently from those of "
        "this library's, {}; {}compile it anew",
        version, NV_TENSORRT_VERSION,
        major == 10 || major == 11 ? fmt::format("run it with the libraries of lib/compat/{}, or ", major) : "");
  });
}

Result<nv::ILogger*> take_logger(void* logger) {
  auto* typed = static_cast<nv::ILogger*>(logger);
  if (!typed) return fail(ErrorCode::invalid_argument, "the logger is null");
  nv::ILogger* none = nullptr;
  g_first_logger.compare_exchange_strong(none, typed);
  return typed;
}

nv::ILogger* first_logger() noexcept { return g_first_logger.load(); }

}  // namespace lathe::api
