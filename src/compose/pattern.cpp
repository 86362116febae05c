// SPDX-License-Identifier: Apache-2.0
// Reads regular expressions by recursive descent.
#include "compose/pattern.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "compose/character_class.h"

namespace lathe {
namespace {

constexpr int kDeepest = 200, kMostRounds = 1000;  // the latter as RE2

Pattern characters(Ranges ranges) { return {PatternKind::characters, std::move(ranges)}; }
Pattern of_kind(PatternKind kind) { return {kind}; }

struct Flags {
  bool ignores_case = false, dot_takes_newline = false;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Pattern> run() {
    LATHE_ASSIGN(Pattern pattern, choice());
    if (at_ < text_.size()) return wrong("a ')' closes nothing");
    return pattern;
  }

 private:
  tl::unexpected<Error> stop(ErrorCode code, std::string_view what) const {
    return fail(code, "pattern '{}', byte {}: {}", text_, at_, what);
  }
  tl::unexpected<Error> wrong(std::string_view what) const { return stop(ErrorCode::model_invalid, what); }
  tl::unexpected<Error> refused(std::string_view what) const { return stop(ErrorCode::op_mode_unsupported, what); }

  bool sees(std::string_view next) const { return text_.substr(at_).starts_with(next); }
  bool take(std::string_view next) {
    if (!sees(next)) return false;
    at_ += next.size();
    return true;
  }
  // The next character; the text is UTF-8 and not at its end.
  uint32_t character() {
    const std::string_view bytes = text_.substr(at_, utf8_bytes(text_.substr(at_)));
    at_ += bytes.size();
    return code_of(bytes);
  }

  Result<Pattern> choice() {
    const Flags outside = flags_;  // a flag holds up to the end of the group in which it is set
    if (++depth_ > kDeepest) return refused("groups lie too deep in one another");
    Pattern all = of_kind(PatternKind::choice);
    do {
      LATHE_ASSIGN(Pattern part, sequence());
      all.parts.push_back(std::move(part));
    } while (take("|"));
    flags_ = outside;
    --depth_;
    return all;
  }

  Result<Pattern> sequence() {
    Pattern all;
    while (at_ < text_.size() && !sees("|") && !sees(")")) {
      if (take("\\Q")) {
        while (at_ < text_.size() && !take("\\E")) {
          LATHE_ASSIGN(Pattern part, literal(character()));
          all.parts.push_back(std::move(part));
        }
        continue;
      }
      LATHE_ASSIGN(Pattern part, atom());
      LATHE_ASSIGN(Pattern repeated, repetition(std::move(part)));
      all.parts.push_back(std::move(repeated));
    }
    return all;
  }

  struct Rounds {
    int least, most;
  };

  std::optional<int> number() {
    const size_t begin = at_;
    int value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      value = std::min(10 * value + (text_[at_] - '0'), kMostRounds + 1);
    return at_ == begin ? std::nullopt : std::optional(value);
  }

  // nullopt where none is there: a '{' that begins none is a character.
  std::optional<Rounds> rounds() {
    if (take("*")) return Rounds{0, kNoMost};
    if (take("+")) return Rounds{1, kNoMost};
    if (take("?")) return Rounds{0, 1};
    const size_t begin = at_;
    if (take("{")) {
      if (const std::optional<int> least = number()) {
        const std::optional<int> most = take(",") ? number().value_or(kNoMost) : least;
        if (take("}")) return Rounds{*least, *most};
      }
    }
    at_ = begin;
    return std::nullopt;
  }

  Result<Pattern> repetition(Pattern part) {
    const std::optional<Rounds> found = rounds();
    if (!found) return part;
    take("?");  // fewer rounds first: matches are whole strings either way
    if (std::max(found->least, found->most) > kMostRounds || (found->most >= 0 && found->most < found->least))
      return wrong("no such number of repetitions");
    if (rounds()) return wrong("a repetition of a repetition");
    Pattern repeated = of_kind(PatternKind::repetition);
    repeated.least = found->least, repeated.most = found->most;
    repeated.parts.push_back(std::move(part));
    return repeated;
  }

  Result<Pattern> literal(uint32_t code) { return chosen({{code, code}}); }

  // One of these characters, in either case where the flag says so.
  Result<Pattern> chosen(Ranges ranges, bool is_negated = false) {
    if (flags_.ignores_case) {
      LATHE_ASSIGN(ranges, in_both_cases(std::move(ranges)));
    }
    return characters(is_negated ? all_but(std::move(ranges)) : united(std::move(ranges)));
  }

  Result<Ranges> in_both_cases(Ranges ranges) const {
    for (const CodeRange& range : ranges)
      if (range.last >= 0x80 && (range.last != kLastCode || range.first > 0x80))
        return refused("flag i goes for letters of ASCII, not for others");
    return with_other_case(std::move(ranges));
  }

  Result<Pattern> atom() {
    if (take("(")) return group();
    if (take("[")) return set();
    if (take("\\")) return escape();
    if (take("^")) return of_kind(PatternKind::text_begin);
    if (take("$")) return of_kind(PatternKind::text_end);
    if (take(".")) return characters(flags_.dot_takes_newline ? all_but({}) : all_but({{'\n', '\n'}}));
    if (rounds()) return wrong("there is nothing to repeat");
    return literal(character());
  }

  Result<Pattern> group() {
    if (take("?")) {
      if (take("P<") || take("<")) {
        const size_t end = text_.find('>', at_);
        if (end == std::string_view::npos || end == at_) return wrong("a group's name is missing");
        at_ = end + 1;
      } else if (!take(":")) {
        return flagged();
      }
    }
    return closed();
  }

  Result<Pattern> closed() {
    LATHE_ASSIGN(Pattern inside, choice());
    if (!take(")")) return wrong("a ')' is missing");
    return inside;
  }

  // (?flags) goes for what follows, (?flags:...) for the group.
  Result<Pattern> flagged() {
    const Flags outside = flags_;
    bool holds = true;
    for (;; ++at_) {
      if (take(")")) return Pattern();
      if (take(":")) break;
      if (sees("-"))
        holds = false;
      else if (sees("i"))
        flags_.ignores_case = holds;
      else if (sees("s"))
        flags_.dot_takes_newline = holds;
      else if (at_ < text_.size() && (text_[at_] == 'm' || text_[at_] == 'U'))
        return refused(fmt::format("flag {} is not supported, of flags i and s are", text_[at_]));
      else
        return refused("of flags i and s are supported, and of groups (?:...) and those with names");
    }
    Result<Pattern> inside = closed();
    flags_ = outside;
    return inside;
  }

  Result<Pattern> escape() {
    if (at_ == text_.size()) return wrong("there is nothing behind the last \\");
    if (take("b")) return of_kind(PatternKind::word_edge);
    if (take("B")) return of_kind(PatternKind::no_word_edge);
    if (take("A")) return of_kind(PatternKind::text_begin);
    if (take("z")) return of_kind(PatternKind::text_end);
    if (const std::optional<Ranges> found = class_escape()) return characters(*found);
    LATHE_ASSIGN(const uint32_t code, escaped_character());
    return literal(code);
  }

  std::optional<Ranges> class_escape() {
    if (at_ == text_.size()) return std::nullopt;
    std::optional<Ranges> found = escaped_class(text_[at_]);
    if (found) ++at_;
    return found;
  }

  Result<uint32_t> escaped_character() {
    if (at_ == text_.size()) return wrong("there is nothing behind the last \\");
    const char next = text_[at_];
    constexpr std::string_view kLetters = "aftnrv", kMeant = "\a\f\t\n\r\v";
    if (const size_t known = kLetters.find(next); known != std::string_view::npos) {
      ++at_;
      return static_cast<uint32_t>(kMeant[known]);
    }
    if (take("x")) return hexadecimal();
    const bool is_word = (next >= '0' && next <= '9') || (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
    if (is_word) return refused("this escape is not supported");
    return character();
  }

  // \x7f, or \x{10ffff}.
  Result<uint32_t> hexadecimal() {
    const bool has_braces = take("{");
    uint32_t code = 0;
    size_t digits = 0;
    for (; at_ < text_.size() && digits < (has_braces ? 6 : 2); ++digits, ++at_) {
      const size_t digit = std::string_view("0123456789abcdef").find(static_cast<char>(text_[at_] | 0x20));
      if (digit == std::string_view::npos || text_[at_] < '0') break;
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    if (digits == 0 || (!has_braces && digits < 2) || (has_braces && !take("}")) || code > kLastCode)
      return wrong("\\x is followed by no number of a character");
    return code;
  }

  Result<Pattern> set() {
    const bool is_negated = take("^");
    Ranges ranges;
    for (bool is_first = true; is_first || !take("]"); is_first = false) {
      if (at_ == text_.size()) return wrong("a ']' is missing");
      LATHE_ASSIGN(const Ranges part, set_part());
      ranges.insert(ranges.end(), part.begin(), part.end());
    }
    return chosen(std::move(ranges), is_negated);
  }

  // A character, a range or a class.
  Result<Ranges> set_part() {
    if (take("[:")) {
      const size_t end = text_.find(":]", at_);
      const std::optional<Ranges> found = named_class(text_.substr(at_, end == std::string_view::npos ? 0 : end - at_));
      if (!found) return wrong("no class has this name");
      at_ = end + 2;
      return *found;
    }
    if (sees("\\")) {
      ++at_;
      if (std::optional<Ranges> found = class_escape()) return *std::move(found);
      --at_;
    }
    LATHE_ASSIGN(const uint32_t first, set_character());
    if (!sees("-") || sees("-]") || at_ + 1 == text_.size()) return Ranges{{first, first}};
    ++at_;
    LATHE_ASSIGN(const uint32_t last, set_character());
    if (last < first) return wrong("a range ends before it begins");
    return Ranges{{first, last}};
  }

  Result<uint32_t> set_character() {
    if (take("\\")) return escaped_character();
    return character();
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Flags flags_;
};

}  // namespace

Result<Pattern> parse_pattern(std::string_view text) {
  if (!is_utf8(text)) return fail(ErrorCode::model_invalid, "its pattern is no UTF-8");
  return Parser(text).run();
}

}  // namespace lathe
