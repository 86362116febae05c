// SPDX-License-Identifier: Apache-2.0
// The mask of an attention.
#pragma once

#include "passes/attention_scores.h"
#include "passes/rewrite.h"

namespace lathe {

// Makes one mask of all that changes an attention's scores.
class AttentionMask {
 public:
  // `lead`: the scores' leading dimensions, of which the mask has two, or none.
  AttentionMask(Rewrite& r, Shape lead, Expr queries, Expr keys)
      : r_(r), lead_(std::move(lead)), queries_(std::move(queries)), keys_(std::move(keys)) {}

  // The mask, and in `attrs` whether it is causal and what hidden keys have. Null = there is none, or a reason why it
  // cannot be told.
  ir::Value* build(const std::vector<ScoreChange>& changes, AttentionAttrs& attrs);

  const std::string& reason() const { return reason_; }

 private:
  // Later keys are hidden by a number, and others have something added; null = nothing.
  struct Causal {
    double number;
    ir::Value* added = nullptr;
    double nearest = 0;    // in each row an earlier key has a number that is at most so far from 0
    bool is_whole = true;  // nothing else is hidden
  };

  std::nullptr_t refuse(std::string reason);
  ir::Value* find(const std::vector<ScoreChange>& scores);
  void take_causal(std::vector<ScoreChange>& changes);
  bool is_of_keys(const ir::Value* mask) const;
  bool is_causal(const Expr& diagonal) const { return diagonal == keys_ - queries_; }
  bool is_causal_condition(const ir::Value* condition, bool hides_where_true) const;
  std::optional<Causal> causal_part(const ScoreChange& change) const;
  std::optional<Causal> causal_constant(const ScoreChange& change) const;
  bool may_be_infinite(const Causal& causal, const std::vector<ScoreChange>& changes, size_t at) const;
  ir::Value* visible_keys(const ScoreChange& change);
  ir::Value* plus(ir::Value* mask, ir::Value* value);
  ir::Value* hiding(ir::Value* mask, ir::Value* condition, const ScoreChange& change);
  ir::Value* aligned(ir::Value* value, const ir::Value* scores);
  ir::Value* folded_heads(ir::Value* mask);

  Rewrite& r_;
  Shape lead_;
  Expr queries_, keys_;
  AttentionAttrs attrs_;
  std::string reason_;
};

}  // namespace lathe
