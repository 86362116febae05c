// SPDX-License-Identifier: Apache-2.0
// Takes apart what attention does between its two matmuls: how the products of queries and keys become probabilities.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace lathe {

// A change of all scores: `value`, which broadcasts to `scores`, multiplies them, is added to them, or says which of
// them become `hidden`.
struct ScoreChange {
  enum class Kind { multiply, add, hide_where_true, hide_where_false };
  Kind kind;
  ir::Value* value;
  const ir::Value* scores;
  double factor = 1;  // of what is added
  double hidden = 0;
};

// probabilities = softmax(changes(cap(product * scale))), where cap(x) = softcap * tanh(x / softcap) unless softcap is
// 0. Sinks are one more column of what the softmax is of, and are cut off its result.
struct AttentionScores {
  const ir::Node* product = nullptr;  // matmul(q, k^T)
  const ir::Node* softmax = nullptr;
  double scale = 1, softcap = 0;
  bool zeros_for_nan = false;     // probabilities that are not numbers become zeros
  bool rounds_to_float8 = false;  // probabilities are rounded to f8e4m3fn, of some scale
  double factor = 1;              // of probabilities before they multiply values
  ir::Value* sinks = nullptr;
  std::vector<ScoreChange> changes;  // multiplications stand before the cap; the others are in order
  // Scores and probabilities, wherever a reshape gives them other leading dimensions: [batch * heads, queries, keys]
  // and [batch, heads, queries, keys].
  std::vector<const ir::Value*> forms;
};

// Why a softmax of products is not the one of an attention.
struct AttentionRefusal {
  const ir::Node* softmax = nullptr;
  std::string reason;
};

// nullopt where `probabilities`, the left operand of a matmul, are no softmax of a matmul of two computed operands; the
// refusal then says what is in the way, and has no reason where they are nothing of the like.
std::optional<AttentionScores> attention_scores(const ir::Value* probabilities, AttentionRefusal& refusal);

}  // namespace lathe
