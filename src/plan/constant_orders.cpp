// SPDX-License-Identifier: Apache-2.0
#include "plan/constant_orders.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/hex.h"

namespace lathe::plan {
namespace {

// The words of a line, whose numbers are those of int64.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : left_(line) {}
  bool done() const { return left_.empty(); }
  std::string_view word() {
    const size_t end = std::min(left_.find(' '), left_.size());
    const std::string_view word = left_.substr(0, end);
    left_.remove_prefix(std::min(end + 1, left_.size()));
    return word;
  }
  std::optional<int64_t> number() {
    const std::string_view text = word();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
  }

 private:
  std::string_view left_;
};

Result<ConstantOrder> read_line(std::string_view line, const Plan& plan) {
  const auto malformed = [&] {
    return fail(ErrorCode::plan_malformed, "the orders of the plan's constants are damaged: '{}'", line.substr(0, 80));
  };
  LineReader words(line);
  const std::optional<int64_t> constant = words.number();
  ConstantOrder order;
  if (!constant || *constant < 0 || static_cast<uint64_t>(*constant) >= plan.constants.size() ||
      !from_hex(words.word(), order.weights))
    return malformed();
  order.constant = static_cast<uint32_t>(*constant);
  std::vector<int64_t> numbers;
  while (!words.done()) {
    const std::optional<int64_t> number = words.number();
    if (!number) return malformed();
    numbers.push_back(*number);
  }
  LATHE_ASSIGN(order.packing, packing_from(numbers));
  return order;
}

}  // namespace

std::string orders_text(std::span<const ConstantOrder> orders) {
  std::string text;
  for (const ConstantOrder& order : orders)
    text += fmt::format("{} {} {}\n", order.constant, to_hex(order.weights), fmt::join(to_numbers(order.packing), " "));
  return text;
}

Result<std::vector<ConstantOrder>> orders_of(const Plan& plan) {
  std::vector<ConstantOrder> orders;
  const auto entry = std::ranges::find(plan.metadata, kOrdersKey, [](const auto& pair) { return pair.first; });
  std::string_view text = entry == plan.metadata.end() ? std::string_view() : entry->second;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    LATHE_ASSIGN(orders.emplace_back(), read_line(text.substr(0, end), plan));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return orders;
}

}  // namespace lathe::plan
