// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/compile_log.h"

#include <algorithm>
#include <charconv>

namespace lathe::cuda {
namespace {

// The number before `unit`; 0 where the line has none.
int64_t number_before(std::string_view line, std::string_view unit) {
  const size_t end = line.find(unit);
  if (end == line.npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int64_t number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

// Calls visit(line) for each line until it returns true.
template <class Visit>
void visit_lines(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (visit(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

Resources parse_resources(std::string_view log) {
  Resources most;
  visit_lines(log, [&](std::string_view line) {
    most.registers = std::max(most.registers, static_cast<int>(number_before(line, " registers")));
    most.stack_bytes = std::max(most.stack_bytes, number_before(line, " bytes stack frame"));
    most.spill_store_bytes = std::max(most.spill_store_bytes, number_before(line, " bytes spill stores"));
    most.spill_load_bytes = std::max(most.spill_load_bytes, number_before(line, " bytes spill loads"));
    return false;
  });
  return most;
}

std::string first_error(std::string_view log) {
  std::string_view first, error;
  visit_lines(log, [&](std::string_view line) {
    if (first.empty()) first = line;
    if (line.find("error") != line.npos) error = line;
    return !error.empty();
  });
  return std::string(error.empty() ? first : error);
}

}  // namespace lathe::cuda
