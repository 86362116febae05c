// SPDX-License-Identifier: Apache-2.0
// The tokens of each expert, as loops over experts find them: by the nonzero elements of a mask of all choices.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace lathe {

// Which experts a token has chosen, [tokens, choices], of so many.
struct Choices {
  ir::Value* chosen = nullptr;
  int64_t experts = 0;
  bool operator==(const Choices&) const = default;
};

// The choices of one expert, as nonzero() lists them: first the numbers of the choices, then those of the tokens.
struct Hits {
  const ir::Node* nonzero = nullptr;
  Choices of;
  int64_t expert = 0;
  const Expr& count() const { return nonzero->output()->shape()[1]; }
};
std::optional<Hits> hits_of(const ir::Node* nonzero);

enum Column : int64_t { kChoice, kToken };
struct HitsColumn {
  const ir::Node* nonzero;
  int64_t column;
  bool operator==(const HitsColumn&) const = default;
};
std::optional<HitsColumn> column_of(const ir::Value* value);

// The expert that the value is the number of: one of those that were hit, where they are taken apart as if all were, as
// networks are that were traced when all were hit. They fail where that is not so.
std::optional<int64_t> number_of_hit(const ir::Value* value, const Choices& choices);

// What views change the shape of.
const ir::Value* behind_views(const ir::Value* value);

}  // namespace lathe
