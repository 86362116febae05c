// SPDX-License-Identifier: Apache-2.0
#include "wrapper/engine_errors.h"

#include <charconv>

namespace lathe::wrapper {
namespace {

constexpr std::string_view kOurs = "LATHE-";

// Our own runtime's reports begin with a code, which stays; other runtimes' are failures of the execution.
Error as_error(std::string_view text) {
  int number = 0;
  const size_t end = text.find(": ");
  if (!text.starts_with(kOurs) || end == std::string_view::npos ||
      std::from_chars(text.data() + kOurs.size(), text.data() + text.size(), number).ec != std::errc())
    return {ErrorCode::execution_failed, std::string(text), {}};
  return {static_cast<ErrorCode>(number), std::string(text.substr(end + 2)), {}};
}

}  // namespace

Error EngineErrors::take(const char* call) {
  const std::lock_guard lock(mutex_);
  Error error =
      text_.empty() ? Error{ErrorCode::execution_failed, "it has failed, and does not say why", {}} : as_error(text_);
  text_.clear();
  code_ = nvinfer1::ErrorCode::kSUCCESS;
  return with_context(std::move(error), call);
}

int32_t EngineErrors::getNbErrors() const noexcept {
  const std::lock_guard lock(mutex_);
  return text_.empty() ? 0 : 1;
}

nvinfer1::ErrorCode EngineErrors::getErrorCode(int32_t) const noexcept {
  const std::lock_guard lock(mutex_);
  return code_;
}

EngineErrors::ErrorDesc EngineErrors::getErrorDesc(int32_t) const noexcept {
  const std::lock_guard lock(mutex_);
  return text_.c_str();
}

void EngineErrors::clear() noexcept {
  const std::lock_guard lock(mutex_);
  text_.clear();
}

bool EngineErrors::reportError(nvinfer1::ErrorCode code, ErrorDesc text) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    code_ = code;
    if (!text_.empty()) text_ += "\n";
    text_ += text;
  } catch (...) {  // the failure itself is seen by the call that returns
  }
  return false;
}

}  // namespace lathe::wrapper
