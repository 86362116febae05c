// SPDX-License-Identifier: Apache-2.0
#include "trtexec/log.h"

#include <cstdio>
#include <ctime>

namespace lathe::trtexec {
namespace {

char letter_of(nvinfer1::ILogger::Severity severity) {
  const auto index = static_cast<size_t>(severity);
  constexpr std::string_view kLetters = "FEWIV";
  return index < kLetters.size() ? kLetters[index] : '?';
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%m/%d/%Y-%H:%M:%S", &local);
  return text;
}

}  // namespace

void TrtexecLog::log(Severity severity, const char* message) noexcept {
  try {
    write(severity, "[TRT] ", message ? message : "");
    if (severity > Severity::kERROR) return;
    const std::lock_guard lock(mutex_);
    ++errors_;
  } catch (...) {  // the library knows no exceptions; a line is lost where memory is
  }
}

void TrtexecLog::write(Severity severity, std::string_view origin, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (severity == Severity::kVERBOSE && !verbose_) return;
  if (paused_ && origin.empty() && severity > Severity::kERROR) return;
  FILE* const out = severity >= Severity::kINFO ? stdout : stderr;
  if (out == stderr) std::fflush(stdout);  // lines stay in order where both go to one file
  const std::string head = fmt::format("[{}] [{}] {}", now_text(), letter_of(severity), origin);
  do {
    const size_t end = std::min(text.find('\n'), text.size());
    fmt::print(out, "{}{}\n", head, text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  } while (!text.empty());
}

}  // namespace lathe::trtexec
