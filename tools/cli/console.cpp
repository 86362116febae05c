// SPDX-License-Identifier: Apache-2.0
#include "console.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace lathe::cli {

void ConsoleLogger::log(Severity severity, const char* message) noexcept {
  try {
    if (severity <= Severity::kERROR)
      errors_ += (errors_.empty() ? "" : "\n") + std::string(message);
    else if (severity <= least_)
      fmt::print(stderr, "{}{}\n", severity == Severity::kWARNING ? "warning: " : "", message);
  } catch (...) {  // a message is lost, no more
  }
}

std::string ConsoleLogger::take_errors() { return std::exchange(errors_, {}); }

Progress::Progress(double budget_seconds) : terminal_(isatty(STDERR_FILENO) != 0), budget_(budget_seconds) {}

void Progress::phaseStart(const char* phase, const char*, int32_t steps) noexcept {
  steps_ = std::max(steps, 1);
  phase_start_ = Clock::now();
  shown_ = {};
  if (terminal_)
    show(phase, 0);
  else
    std::fprintf(stderr, "%6.1f s  %s\n", seconds_since(start_), phase);
}

bool Progress::stepComplete(const char* phase, int32_t step) noexcept {
  if (terminal_ && seconds_since(shown_) > 0.1) show(phase, static_cast<double>(step + 1) / steps_);
  return true;
}

void Progress::phaseFinish(const char* phase) noexcept {
  if (terminal_) show(phase, 1);
}

void Progress::show(const char* phase, double fraction) noexcept {
  shown_ = Clock::now();
  const double elapsed = seconds_since(phase_start_);
  double left = fraction > 0.02 ? elapsed / fraction * (1 - fraction) : budget_ - elapsed;
  if (budget_ > 0) left = std::min(left, std::max(0.0, budget_ - elapsed));
  char eta[32] = "";
  if (fraction < 1 && left > 0) std::snprintf(eta, sizeof(eta), ", about %.0f s left", left + 0.5);
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * 24);
  std::fprintf(stderr, "\r\033[K[%.*s%.*s] %3.0f%% %s, %.1f s%s", filled, "########################", 24 - filled,
               "........................", fraction * 100, phase, seconds_since(start_), eta);
  line_open_ = true;
}

void Progress::finish() noexcept {
  if (line_open_) std::fputs("\r\033[K", stderr);
  line_open_ = false;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  std::vector<bool> right;
  for (const std::string& heading : rows.front()) {
    right.push_back(heading.starts_with('>'));
    widths.push_back(0);
  }
  const auto text_of = [&](size_t row, size_t column) -> std::string_view {
    const std::string_view text = rows[row][column];
    return row == 0 && right[column] ? text.substr(1) : text;
  };
  for (size_t row = 0; row < rows.size(); ++row)
    for (size_t column = 0; column < widths.size(); ++column)
      widths[column] = std::max(widths[column], text_of(row, column).size());
  std::string out;
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t column = 0; column < widths.size(); ++column) {
      const std::string_view text = text_of(row, column);
      const std::string gap(widths[column] - text.size(), ' ');
      if (column) out += "  ";
      if (right[column]) out += gap;
      out += text;
      if (!right[column] && column + 1 < widths.size()) out += gap;
    }
    out += '\n';
    if (row) continue;
    for (size_t column = 0; column < widths.size(); ++column)
      out += (column ? "  " : "") + std::string(widths[column], '-');
    out += '\n';
  }
  return out;
}

std::string evaluated_text(double share) {
  return fmt::format("about {:.1f} % of the time goes to plain evaluations, of ops without a kernel", share * 100);
}

std::string human_bytes(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KB", bytes / 1024);
  return fmt::format("{:.1f} MB", bytes / 1024 / 1024);
}

std::string human_time(double ms) {
  if (ms < 0.1) return fmt::format("{:.2f} us", ms * 1e3);
  return ms < 1000 ? fmt::format("{:.3f} ms", ms) : fmt::format("{:.2f} s", ms / 1e3);
}

std::string shorten(std::string text, size_t width) {
  if (text.size() > width) text = text.substr(0, width - 3) + "...";
  return text;
}

int64_t peak_kb() {
  FILE* file = std::fopen("/proc/self/status", "r");
  if (!file) return 0;
  char line[256];
  long long kb = 0;
  while (std::fgets(line, sizeof(line), file))
    if (std::sscanf(line, "VmHWM: %lld", &kb) == 1) break;
  std::fclose(file);
  return kb;
}

}  // namespace lathe::cli
