// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

namespace lathe {
namespace {

class NullLog final : public Log {
 public:
  void write(Severity, std::string_view) override {}
  bool accepts(Severity) const override { return false; }
};

}  // namespace

Log& null_log() {
  static NullLog log;
  return log;
}

}  // namespace lathe
