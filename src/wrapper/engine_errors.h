// SPDX-License-Identifier: Apache-2.0
// What the engine and its contexts report, so that a failure of theirs becomes one report of the wrapper's.
#pragma once

#include <mutex>
#include <string>

#include "NvInferRuntime.h"
#include "base/result.h"

namespace lathe::wrapper {

class EngineErrors final : public nvinfer1::IErrorRecorder {
 public:
  // Why the call has failed, by the reports since the last one that was taken.
  Error take(const char* call);

  int32_t getNbErrors() const noexcept override;
  nvinfer1::ErrorCode getErrorCode(int32_t index) const noexcept override;
  ErrorDesc getErrorDesc(int32_t index) const noexcept override;
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override;
  bool reportError(nvinfer1::ErrorCode code, ErrorDesc text) noexcept override;
  RefCount incRefCount() noexcept override { return 1; }  // it lives as long as the wrapper
  RefCount decRefCount() noexcept override { return 1; }

 private:
  mutable std::mutex mutex_;
  nvinfer1::ErrorCode code_ = nvinfer1::ErrorCode::kSUCCESS;
  std::string text_;  // of all reports, one a line
};

}  // namespace lathe::wrapper
