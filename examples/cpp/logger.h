// SPDX-License-Identifier: Apache-2.0
// Warnings and errors go to the standard error stream.
#pragma once

#include <cstdio>

#include "NvInfer.h"

class Logger final : public nvinfer1::ILogger {
 public:
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kWARNING) std::fprintf(stderr, "%s\n", message);
  }
};
