// SPDX-License-Identifier: Apache-2.0
// Expressions: text never crashes the parser and round-trips; trees built from bytes keep their value when simplified.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "shape/expr.h"

namespace lathe {
namespace {

struct Sample {
  Expr expr;
  std::optional<__int128> value;
};

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  uint8_t next() { return position_ < bytes_.size() ? bytes_[position_++] : 0; }

 private:
  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
};

constexpr std::array<int64_t, 4> kValues = {3, -4, 0, 17};

std::optional<__int128> keep(bool defined, __int128 value) {
  return defined && value <= INT64_MAX && value >= -INT64_MAX ? std::optional(value) : std::nullopt;
}

Sample build(Reader& reader, int depth) {
  const uint8_t choice = depth == 0 ? reader.next() % 3 : reader.next() % 10;
  if (choice == 0) {
    const auto value = static_cast<int8_t>(reader.next());
    return {Expr(value), value};
  }
  if (choice == 1) return {Expr(INT64_MAX - reader.next()), std::nullopt};
  if (choice == 2) {
    const SymbolId id = reader.next() % 4;
    return {Expr::symbol(id), kValues[id]};
  }
  const Sample a = build(reader, depth - 1), b = build(reader, depth - 1);
  const __int128 x = a.value.value_or(0), y = b.value.value_or(0);
  const bool both = a.value && b.value;
  const __int128 quotient = y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0));
  switch (choice) {
    case 3:
      return {a.expr + b.expr, keep(both, x + y)};
    case 4:
      return {a.expr - b.expr, keep(both, x - y)};
    case 5:
      return {a.expr * b.expr, keep(both, x * y)};
    case 6:
      return {floordiv(a.expr, b.expr), keep(both && y != 0, quotient)};
    case 7:
      return {mod(a.expr, b.expr), keep(both && y != 0, x - y * quotient)};
    case 8:
      return {min(a.expr, b.expr), keep(both, std::min(x, y))};
    default:
      return {max(a.expr, b.expr), keep(both, std::max(x, y))};
  }
}

void require(bool condition) {
  if (!condition) std::abort();
}

void check_round_trip(const Expr& e) {
  const auto back = parse_expr(e.to_string());
  require(back.has_value() && *back == e && back->hash() == e.hash());
}

}  // namespace
}  // namespace lathe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe;
  if (size == 0) return 0;
  if (data[0] & 1) {
    const auto e = parse_expr({reinterpret_cast<const char*>(data) + 1, size - 1});
    if (e) check_round_trip(*e);
    return 0;
  }
  Reader reader({data + 1, size - 1});
  const Sample sample = build(reader, 6);
  if (!sample.expr.is_valid()) return 0;
  check_round_trip(sample.expr);
  if (!sample.value) return 0;
  require(sample.expr.evaluate(kValues) == static_cast<int64_t>(*sample.value));
  std::array<Range, 4> ranges;
  for (size_t i = 0; i < 4; ++i) ranges[i] = {kValues[i] - 1, kValues[i] + 2};
  const Range range = sample.expr.range(ranges);
  require(range.min <= *sample.value && *sample.value <= range.max);
  return 0;
}
