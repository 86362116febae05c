// SPDX-License-Identifier: Apache-2.0
// The mask of an attention.
#pragma once

#include "base/seen_keys.h"
#include "passes/attention_scores.h"
#include "passes/attention_shapes.h"
#include "passes/distance_rows.h"
#include "passes/hidden_scores.h"
#include "passes/key_bands.h"
#include "passes/rewrite.h"

namespace lathe {

// Makes one mask of all that changes an attention's scores.
class AttentionMask {
 public:
  // `lead`: the scores' leading dimensions, of which the mask has two, or none. Queries and keys are rows of q and k.
  AttentionMask(Rewrite& r, Shape lead, ir::Value* q, ir::Value* k)
      : r_(r), lead_(std::move(lead)), queries_(rows_of(q)), keys_(rows_of(k)), rows_(r, q, k) {}

  // The mask, and in `attrs` which keys are seen by their places and what hidden keys have. Null = there is none, or a
  // reason why it cannot be told.
  ir::Value* build(const AttentionScores& scores, AttentionAttrs& attrs);

  // What is added by the distances of keys from queries, a row of each head or of all, once the mask is built; null =
  // nothing.
  ir::Value* distances() const { return distances_; }

  const std::string& reason() const { return reason_; }
  // Why the mask has an element for each query and key, if it has; empty = it has not.
  const std::string& note() const { return note_; }

 private:
  // What a change does to keys by their places.
  struct Placed {
    SeenKeys seen = {};
    double number = kNothing;             // that hides the others
    double nearest = 0;                   // in each row a key that is seen has a number that is at most so far from 0
    ir::Value* added = nullptr;           // to the scores of keys that are seen; null = nothing
    std::vector<ir::Value*> others = {};  // conditions, besides, for a key to be seen, or to be hidden
    bool is_kept = false;                 // the change stays as it is, for it does more
  };

  std::nullptr_t refuse(std::string reason);
  ir::Value* find(const AttentionScores& scores);
  bool joins(std::vector<ScoreChange>& changes, const ScoreChange& change);
  void lower_hidden(std::vector<ScoreChange>& changes, size_t at, const ir::Value* sinks);
  bool take_distances(std::vector<ScoreChange>& changes);
  bool take_distance(const ScoreChange& change);
  bool seen_are_near(const Tensor& row, double factor) const;
  ir::Value* row_of_heads(ir::Value* row, const ir::Value* scores);
  bool take_places(std::vector<ScoreChange>& changes, const ir::Value* sinks);
  void take_place(std::vector<ScoreChange>& changes, size_t at, const Placed& placed, bool is_infinite);
  bool is_of_keys(const ir::Value* mask) const;
  bool counts_keys(const ir::Value* condition, const std::vector<ir::Value*>& beside, bool is_negated) const;
  std::optional<SeenKeys> seen_in(const Band& band) const;
  std::optional<Placed> placed_part(const ScoreChange& change) const;
  std::optional<Placed> placed_numbers(const ir::Value* mask) const;
  std::optional<Placed> placed_condition(const ScoreChange& change) const;
  std::optional<Placed> placed_constant(const ScoreChange& change) const;
  std::optional<ScoreChange> without_places(const ScoreChange& change, const Placed& placed);
  bool may_be_infinite(const Placed& placed, const std::vector<ScoreChange>& changes, size_t at,
                       const ir::Value* sinks) const;
  double farthest_added(const Placed& placed, const std::vector<ScoreChange>& changes, size_t at,
                        double of_hiding) const;
  bool may_be_mean(const Placed& placed, const std::vector<ScoreChange>& changes, size_t at,
                   const ir::Value* sinks) const;
  ir::Value* all_of(const std::vector<ir::Value*>& conditions, bool hide_where_true);
  ir::Value* visible_keys(const ScoreChange& change);
  ir::Value* plus(ir::Value* mask, ir::Value* value);
  ir::Value* hiding(ir::Value* mask, ir::Value* condition, const ScoreChange& change);
  ir::Value* aligned(ir::Value* value, const ir::Value* scores);
  ir::Value* folded_heads(ir::Value* mask);

  Rewrite& r_;
  Shape lead_;
  Expr queries_, keys_;
  DistanceRows rows_;
  ir::Value* distances_ = nullptr;
  std::vector<ScoreChange> by_distance_;  // that the distances stand for
  AttentionAttrs attrs_;
  std::string reason_, note_;
};

}  // namespace lathe
