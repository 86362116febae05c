// SPDX-License-Identifier: Apache-2.0
// The mask of an attention.
#pragma once

#include "passes/attention_scores.h"
#include "passes/rewrite.h"

namespace lathe {

// Makes one mask of all that changes an attention's scores.
class AttentionMask {
 public:
  // `whole`: the scores' leading dimensions, of which the mask has two, or none; `keys` and `queries` say where the
  // diagonal of causal attention lies.
  AttentionMask(Rewrite& r, Shape whole, const Expr& queries, const Expr& keys)
      : r_(r), whole_(std::move(whole)), diagonal_(keys - queries) {}

  // The mask, and in `attrs` whether it is causal and what hidden keys have. Null = there is none, or a reason why it
  // cannot be told.
  ir::Value* build(const std::vector<ScoreChange>& changes, AttentionAttrs& attrs);

  const std::string& reason() const { return reason_; }

 private:
  std::nullptr_t refuse(std::string reason);
  ir::Value* find(const std::vector<ScoreChange>& scores);
  bool is_causal(const Expr& d) const { return d == diagonal_; }
  bool is_causal(const ScoreChange& change);
  ir::Value* visible_keys(const ScoreChange& change);
  ir::Value* plus(ir::Value* mask, ir::Value* value);
  ir::Value* hiding(ir::Value* mask, ir::Value* condition, const ScoreChange& change);
  ir::Value* aligned(ir::Value* value, const ir::Value* scores);
  ir::Value* folded_heads(ir::Value* mask);

  Rewrite& r_;
  Shape whole_;
  Expr diagonal_;
  AttentionAttrs attrs_;
  std::string reason_;
};

}  // namespace lathe
