// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/entry_point.h"
#include "api/report.h"
#include "base/never_destroyed.h"
#include "plugin/registry.h"

namespace lathe::api {

// How a plugin registry reports: to its own recorder, else as `reporter` does.
inline plugin::Registry::Report registry_report(const std::shared_ptr<Reporter>& reporter) {
  return [reporter](nv::IErrorRecorder* recorder, const char* where, const Error& error) {
    Reporter own(std::shared_ptr<const Reporter>{reporter});
    own.set_recorder(recorder);
    own.report(where, error);
  };
}

// Gives plugin libraries the logger that getLogger() gives: the first one that the process has handed in.
inline nv::ILoggerFinder* logger_finder() {
  class Finder final : public nv::ILoggerFinder {
   public:
    nv::ILogger* findLogger() override { return first_logger(); }
  };
  static NeverDestroyed<Finder> finder;  // for libraries, which may ask it at any time
  return &*finder;
}

}  // namespace lathe::api
