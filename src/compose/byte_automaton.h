// SPDX-License-Identifier: Apache-2.0
// Finite automata over bytes, which read the strings of a tensor (compose/text.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace lathe {

// Begins in state 0. Bytes of one class lead to the same states: from state s to next[s * classes + class_of[byte]].
struct ByteAutomaton {
  std::array<uint8_t, 256> class_of{};
  size_t classes = 1;
  std::vector<int32_t> next;
  size_t states() const { return next.size() / classes; }
};

// Reads whole strings: the zeros behind one leave it in the state in which it ends.
struct WordAutomaton {
  ByteAutomaton reader;
  std::vector<int64_t> word_at;  // of each state: the index of the word that ends there; -1: none does
};

// Of equal words the last one counts.
WordAutomaton words_automaton(const std::vector<std::string>& words);

// Is in state delimiter.size() behind each occurrence of the delimiter, of which none overlaps the one before it.
ByteAutomaton delimiter_automaton(const std::string& delimiter);

}  // namespace lathe
