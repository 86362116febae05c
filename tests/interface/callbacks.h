// SPDX-License-Identifier: Apache-2.0
// Objects that clients give the library, which count what it calls of them, and how clients say what came.
#pragma once

#include <cstdio>

#include "NvInfer.h"

namespace nvinfer1 {

inline void print(const char* what, bool value) { std::printf("%s: %s\n", what, value ? "yes" : "no"); }

class Recorder final : public IErrorRecorder {
 public:
  int32_t getNbErrors() const noexcept override { return errors; }
  ErrorCode getErrorCode(int32_t) const noexcept override { return ErrorCode::kINVALID_ARGUMENT; }
  ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override { errors = 0; }
  bool reportError(ErrorCode, ErrorDesc) noexcept override { return ++errors < 0; }
  RefCount incRefCount() noexcept override { return ++references; }
  RefCount decRefCount() noexcept override { return --references; }
  int32_t errors = 0, references = 0;
};

class Profiler final : public IProfiler {
 public:
  void reportLayerTime(const char*, float ms) noexcept override { layers += ms >= 0 ? 1 : -1; }
  int layers = 0;
};

}  // namespace nvinfer1
