// SPDX-License-Identifier: Apache-2.0
// The text form of expressions.
//
//   sum     = ["-"] product { ("+" | "-") product }
//   product = factor { "*" factor }
//   factor  = number | "s" number | function "(" sum "," sum { "," sum } ")" | "(" sum ")" | "-" factor
// where a function is one of kNames, and only min and max take more than two operands.
#include <algorithm>
#include <array>
#include <charconv>

#include "shape/expr_poly.h"

namespace lathe {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"floordiv", "mod", "min", "max", "broadcast"};

void print(const Expr& e, std::span<const std::string> names, std::string& out);

void print(CallKind kind, const std::vector<Expr>& operands, std::span<const std::string> names, std::string& out) {
  out += kNames[static_cast<size_t>(kind)];
  out += '(';
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) out += ", ";
    print(operands[i], names, out);
  }
  out += ')';
}

void print(const Atom& atom, std::span<const std::string> names, std::string& out) {
  if (atom.call) {
    const bool chain = atom.call->kind == CallKind::min || atom.call->kind == CallKind::max;
    print(atom.call->kind, chain ? operands_of(*atom.call) : std::vector{atom.call->a, atom.call->b}, names, out);
  } else if (atom.symbol < names.size() && !names[atom.symbol].empty()) {
    out += names[atom.symbol];
  } else {
    out += 's';
    out += std::to_string(atom.symbol);
  }
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// The sign of a summand, with the blanks of its place.
void print_sign(bool negative, std::string& out, size_t start) {
  if (out.size() == start)
    out += negative ? "-" : "";
  else
    out += negative ? " - " : " + ";
}

// A sum that is shorter as a min or max is shown as one: s - max(s - 128, 0) as min(s, 128).
bool print_choice(const Expr& e, CallKind kind, std::span<const std::string> names, std::string& out) {
  std::vector<Expr> choices = choices_of(e, kind);
  uint64_t size = 0;
  for (const Expr& choice : choices) size += choice.size() + 1;
  if (choices.empty() || size > e.size() || !(combine(choices, kind) == e)) return false;
  std::sort(choices.begin(), choices.end(), [](const Expr& a, const Expr& b) { return compare(a, b) < 0; });
  print(kind, choices, names, out);
  return true;
}

// The rest of a division is shown as mod, with the constant beside it: h - 7*floordiv(h, 7) + 1 as mod(h, 7) + 1.
bool print_mod(const Expr& e, std::span<const std::string> names, std::string& out) {
  for (const Term& term : ExprAccess::terms(e)) {
    const Call* call = term.monomial.size() == 1 ? term.monomial[0].atom.call.get() : nullptr;
    if (!call || call->kind != CallKind::floordiv || !call->b.is_constant()) continue;
    const int64_t factor = term.coefficient == INT64_MIN ? 0 : -term.coefficient / *call->b.as_constant();
    const Expr rest = e - Expr(factor) * mod(call->a, call->b);
    if (!rest.is_constant() || factor == 0) continue;
    if (factor != 1) out += factor == -1 ? "-" : fmt::format("{}*", factor);
    print(CallKind::mod, {call->a, call->b}, names, out);
    const int64_t constant = *rest.as_constant();
    if (constant != 0) out += fmt::format(" {} {}", constant < 0 ? '-' : '+', magnitude(constant));
    return true;
  }
  return false;
}

void print(const Expr& e, std::span<const std::string> names, std::string& out) {
  if (print_mod(e, names, out)) return;
  if (print_choice(e, CallKind::max, names, out) || print_choice(e, CallKind::min, names, out)) return;
  const size_t start = out.size();
  for (const Term& term : ExprAccess::terms(e)) {
    print_sign(term.coefficient < 0, out, start);
    bool first = true;
    if (magnitude(term.coefficient) != 1) {
      out += std::to_string(magnitude(term.coefficient));
      first = false;
    }
    for (const Factor& factor : term.monomial) {
      for (uint32_t i = 0; i < factor.power; ++i) {
        if (!first) out += '*';
        first = false;
        print(factor.atom, names, out);
      }
    }
  }
  const int64_t constant = ExprAccess::constant(e);
  if (constant == 0 && out.size() != start) return;
  print_sign(constant < 0, out, start);
  out += std::to_string(magnitude(constant));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Expr> parse() {
    Expr e = sum();
    skip_blanks();
    if (!failed_ && position_ != text_.size()) set_error("expected an operator");
    if (!failed_ && !e.is_valid()) set_error("the expression overflows or divides by 0");
    if (failed_) return fail(ErrorCode::text_syntax, "expression, column {}: {}", column_, reason_);
    return e;
  }

 private:
  void set_error(std::string_view reason) {
    if (failed_) return;
    failed_ = true;
    reason_ = reason;
    column_ = position_ + 1;
  }
  void skip_blanks() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  char peek() {
    skip_blanks();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  void expect(char c, std::string_view reason) {
    if (!accept(c)) set_error(reason);
  }

  // Reading stops at the first error or invalid part, which also bounds the work on hostile text.
  Expr sum() {
    if (++depth_ > 2 * static_cast<int>(kMaxExprDepth)) set_error("too deeply nested");
    Expr result = product(accept('-'));
    while (!failed_ && result.is_valid()) {
      if (accept('+'))
        result += product(false);
      else if (accept('-'))
        result += product(true);
      else
        break;
    }
    --depth_;
    return result;
  }

  Expr product(bool negative) {
    Expr result = factor(negative);
    while (!failed_ && result.is_valid() && accept('*')) result *= factor(false);
    return result;
  }

  // The sign goes to the first factor, so that -9223372036854775808 can be read.
  Expr factor(bool negative) {
    if (failed_) return Expr();
    while (accept('-')) negative = !negative;
    const char c = peek();
    if (c >= '0' && c <= '9') return number(negative);
    const Expr e = c == '(' ? parenthesis() : name();
    return negative ? Expr(0) - e : e;
  }

  Expr parenthesis() {
    expect('(', "expected '('");
    Expr e = sum();
    if (e.is_valid()) expect(')', "expected ')'");
    return e;
  }

  Expr number(bool negative) {
    uint64_t value = 0;
    if (!read(value)) return Expr();
    const uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
    if (value > limit) set_error("number is out of range");
    return Expr(static_cast<int64_t>(negative ? 0 - value : value));
  }

  template <class T>
  bool read(T& value) {
    const char* end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + position_, end, value);
    if (error != std::errc()) {
      set_error("number is missing or out of range");
      return false;
    }
    position_ = static_cast<size_t>(stop - text_.data());
    return true;
  }

  Expr name() {
    if (accept('s')) {
      SymbolId id = 0;
      return read(id) ? Expr::symbol(id) : Expr();
    }
    for (size_t kind = 0; kind < kNames.size(); ++kind) {
      if (!text_.substr(position_).starts_with(kNames[kind])) continue;
      position_ += kNames[kind].size();
      return call(static_cast<CallKind>(kind));
    }
    set_error("expected a number, a symbol, a function or '('");
    return Expr();
  }

  Expr call(CallKind kind) {
    expect('(', "expected '('");
    const bool chain = kind == CallKind::min || kind == CallKind::max;
    std::vector<Expr> operands;
    do {
      if (operands.size() > kMaxExprDepth) set_error("too many operands");  // their chain would be too deep
      operands.push_back(sum());
      if (failed_ || !operands.back().is_valid()) return operands.back();
      if (operands.size() == 1) expect(',', "expected ','");
    } while (!failed_ && (operands.size() == 1 || (chain && accept(','))));
    if (failed_) return Expr();
    expect(')', "expected ')'");
    if (chain) return combine(operands, kind);
    return call_of(kind, operands[0], operands[1]);
  }

  std::string_view text_;
  size_t position_ = 0;
  int depth_ = 0;
  bool failed_ = false;
  std::string_view reason_;
  size_t column_ = 0;
};

}  // namespace

std::string Expr::to_string(std::span<const std::string> names) const {
  if (!valid_) return "invalid";
  std::string text;
  print(*this, names, text);
  return text;
}

Result<Expr> parse_expr(std::string_view text) { return Parser(text).parse(); }

}  // namespace lathe
