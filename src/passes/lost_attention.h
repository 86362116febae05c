// SPDX-License-Identifier: Apache-2.0
// Why a softmax between two products is part of no attention.
#pragma once

#include "passes/pass.h"

namespace lathe {

inline constexpr std::string_view kNoAttention = "no attention is made of it: ";  // what such a note begins with
inline constexpr std::string_view kIntegerProbabilities =
    "its probabilities are rounded to integers: a kernel would need the sum over all keys first";

// What was noted of the graph's softmaxes before holds no more.
void forget_lost_attentions(const ir::Graph& graph, PassContext& context);

// Notes a reason for each softmax of products that multiplies something computed and has none yet.
void note_lost_attentions(const ir::Graph& graph, PassContext& context);

}  // namespace lathe
