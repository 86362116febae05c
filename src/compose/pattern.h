// SPDX-License-Identifier: Apache-2.0
// Regular expressions: what they consist of, and automata that match them.
//
// The syntax is RE2's, of which \p{...}, \C and the flags m and U are refused, and i for letters beyond ASCII.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "compose/byte_automaton.h"

namespace lathe {

struct CodeRange {  // of Unicode's characters, both included
  uint32_t first, last;
};

enum class PatternKind : uint8_t {
  characters,  // one of `ranges`, which are sorted and apart; an empty list matches nothing
  sequence,
  choice,
  repetition,  // of parts[0]
  text_begin,
  text_end,
  word_edge,
  no_word_edge,
};

constexpr int kNoMost = -1;

struct Pattern {
  PatternKind kind = PatternKind::sequence;
  std::vector<CodeRange> ranges{};
  std::vector<Pattern> parts{};
  int least = 0, most = kNoMost;  // rounds of a repetition
};

// Fails with op_mode_unsupported or model_invalid.
Result<Pattern> parse_pattern(std::string_view text);

// Has word 0 behind strings all of which the pattern matches. Fails where it would have too many states.
Result<WordAutomaton> pattern_automaton(const Pattern& pattern);

}  // namespace lathe
