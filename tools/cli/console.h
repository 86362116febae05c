// SPDX-License-Identifier: Apache-2.0
// What the person at the terminal sees.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "NvInfer.h"

namespace lathe::cli {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Warnings go to standard error at once; of errors the text is kept, for the command to report.
class ConsoleLogger final : public nvinfer1::ILogger {
 public:
  explicit ConsoleLogger(Severity least = Severity::kWARNING) : least_(least) {}
  void log(Severity severity, const char* message) noexcept override;
  std::string take_errors();

 private:
  Severity least_;
  std::string errors_;
};

// One line that is overwritten on a terminal, one line per phase elsewhere.
class Progress final : public nvinfer1::IProgressMonitor {
 public:
  explicit Progress(double budget_seconds);
  ~Progress() noexcept override { finish(); }
  void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept override;
  bool stepComplete(const char* phase, int32_t step) noexcept override;
  void phaseFinish(const char* phase) noexcept override;
  void finish() noexcept;

 private:
  void show(const char* phase, double fraction) noexcept;

  bool terminal_;
  bool line_open_ = false;
  double budget_;
  int32_t steps_ = 1;
  Clock::time_point start_ = Clock::now();
  Clock::time_point phase_start_ = start_;
  Clock::time_point shown_{};
};

// Columns as wide as their contents; the first row is the heading. Columns whose heading starts with '>' are aligned
// to the right (the mark is not shown).
std::string table(const std::vector<std::vector<std::string>>& rows);

std::string human_bytes(double bytes);        // "1.5 MB"
std::string evaluated_text(double share);     // what part of the time, from 0 to 1, no kernel takes
std::string human_time(double milliseconds);  // "1.23 ms", "45.6 us"
std::string shorten(std::string text, size_t width);

// Peak resident memory of this process so far, in KiB (VmHWM).
int64_t peak_kb();

}  // namespace lathe::cli
