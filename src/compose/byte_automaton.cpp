// SPDX-License-Identifier: Apache-2.0
#include "compose/byte_automaton.h"

namespace lathe {
namespace {

size_t index_of(char byte) { return static_cast<unsigned char>(byte); }

// Class 0 is that of all bytes that no word has.
void give_classes(ByteAutomaton& automaton, const std::string& word) {
  for (const char byte : word) {
    uint8_t& of = automaton.class_of[index_of(byte)];
    if (of == 0) of = static_cast<uint8_t>(automaton.classes++);
  }
}

}  // namespace

WordAutomaton words_automaton(const std::vector<std::string>& words) {
  constexpr int32_t kRefused = 1;
  WordAutomaton found;
  ByteAutomaton& reader = found.reader;
  reader.classes = 2;
  reader.class_of.fill(1);
  reader.class_of[0] = 0;
  std::array<bool, 256> has_class{};
  for (const std::string& word : words)
    for (const char byte : word)
      if (bool& has = has_class[index_of(byte)]; !has)
        has = true, reader.class_of[index_of(byte)] = static_cast<uint8_t>(reader.classes++);
  const auto add_state = [&] {
    const auto state = static_cast<int32_t>(reader.states());
    reader.next.resize(reader.next.size() + reader.classes, kRefused);
    reader.next[static_cast<size_t>(state) * reader.classes] = state;
    found.word_at.push_back(-1);
    return state;
  };
  add_state(), add_state();
  for (size_t i = 0; i < words.size(); ++i) {
    int32_t state = 0;
    for (const char byte : words[i]) {
      const size_t edge = static_cast<size_t>(state) * reader.classes + reader.class_of[index_of(byte)];
      if (reader.next[edge] == kRefused) {
        const int32_t added = add_state();
        reader.next[edge] = added;
      }
      state = reader.next[edge];
    }
    found.word_at[static_cast<size_t>(state)] = static_cast<int64_t>(i);
  }
  return found;
}

ByteAutomaton delimiter_automaton(const std::string& delimiter) {
  ByteAutomaton automaton;
  give_classes(automaton, delimiter);
  automaton.next.assign((delimiter.size() + 1) * automaton.classes, 0);
  // As that of Knuth, Morris and Pratt; `other` is the state of what has been read, less its first byte.
  size_t other = 0;
  for (size_t state = 0; state < delimiter.size(); ++state) {
    const size_t row = state * automaton.classes, wanted = automaton.class_of[index_of(delimiter[state])];
    for (size_t k = 0; k < automaton.classes && state > 0; ++k)
      automaton.next[row + k] = automaton.next[other * automaton.classes + k];
    automaton.next[row + wanted] = static_cast<int32_t>(state + 1);
    if (state > 0) other = static_cast<size_t>(automaton.next[other * automaton.classes + wanted]);
  }
  for (size_t k = 0; k < automaton.classes; ++k)
    automaton.next[delimiter.size() * automaton.classes + k] = automaton.next[k];
  return automaton;
}

}  // namespace lathe
