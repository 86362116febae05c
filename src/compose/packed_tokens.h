// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// Tokens of several sequences: padded, [batch, heads, tokens, size], or packed end to end, [tokens, heads, size].
// `starts` of packed ones is the place of each sequence's first token and, behind the last sequence, where its tokens
// end.
struct TokenSource {
  ir::Value* tokens;
  ir::Value* starts = nullptr;  // null = padded
};

// Of tokens that are laid out in one sequence: which of the sequences each belongs to, and its place there.
class PackedTokens {
 public:
  PackedTokens(ir::GraphBuilder& c, const TokenSource& source);

  ir::Value* sequences() const { return sequences_; }  // the number of sequences for those behind the last one
  ir::Value* positions() const { return positions_; }
  // Which tokens are of a sequence; null = all.
  ir::Value* counted() const { return last_ ? c_.binary(ElementwiseOp::less, sequences_, last_) : nullptr; }
  // How many tokens each of these sequences has.
  ir::Value* lengths_of(ir::Value* sequences) const;

 private:
  ir::GraphBuilder& c_;
  ir::Value *sequences_ = nullptr, *positions_ = nullptr, *length_ = nullptr, *starts_ = nullptr, *last_ = nullptr;
};

}  // namespace lathe
