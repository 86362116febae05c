// SPDX-License-Identifier: Apache-2.0
// Tensors of strings as tensors of bytes, and what is done with them, made of ops that all devices have.
//
// A string is a row of u8[dims..., bytes]: its UTF-8, and zeros behind it up to the end of the row, at least one byte
// long. Where nothing else is said, x is such a tensor, and what comes back is one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compose/byte_automaton.h"
#include "ir/builder.h"

namespace lathe {

// Fails where a string is no UTF-8 or has a zero byte.
Result<Tensor> text_tensor(Dims dims, std::span<const std::string_view> strings);

// Whether strings of a and b are the same; their dims broadcast.
ir::Value* same_text(ir::GraphBuilder& c, ir::Value* a, ir::Value* b);

// Strings of b behind those of a; their dims broadcast.
ir::Value* joined_text(ir::GraphBuilder& c, ir::Value* a, ir::Value* b);

// Both with rows of one length.
struct TextPair {
  ir::Value *a, *b;
};
TextPair of_one_width(ir::GraphBuilder& c, ir::Value* a, ir::Value* b);

// The word that each string is by the automaton, or -1: i64[dims...].
ir::Value* find_words(ir::GraphBuilder& c, ir::Value* x, const WordAutomaton& automaton);
inline ir::Value* find_words(ir::GraphBuilder& c, ir::Value* x, const std::vector<std::string>& words) {
  return find_words(c, x, words_automaton(words));
}

// Pieces of each string, [dims..., pieces], as many as the string with most of them has, and how many each has,
// i64[dims...]. An empty delimiter stands for runs of ASCII's white space, which at the begin and the end of a string
// separate nothing. The last of most + 1 pieces is what is left; below 0: no limit. Pieces that a string lacks are
// empty.
struct SplitText {
  ir::Value *pieces, *counts;
};
SplitText split_text(ir::GraphBuilder& c, ir::Value* x, const std::string& delimiter, int64_t most);

// Letters in upper or lower case (compose/letter_case.h).
ir::Value* change_case(ir::GraphBuilder& c, ir::Value* x, bool to_lower);

}  // namespace lathe
