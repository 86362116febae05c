// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "NvInferRuntime.h"

namespace lathe {

// Counts reports, and allocates nothing.
class CountErrors final : public nvinfer1::ILogger {
 public:
  void log(Severity severity, const char*) noexcept override { errors += severity <= Severity::kERROR; }
  int errors = 0;
};

}  // namespace lathe
