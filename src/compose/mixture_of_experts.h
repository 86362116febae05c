// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ir/builder.h"

namespace lathe {

// Gated linear units, one for each expert: down(f(gate(x), up(x))).
struct Experts {
  ir::Value *gate, *up, *down;  // weights: [experts, hidden, inner] twice, [experts, inner, hidden]
  ir::Value *gate_bias = nullptr, *up_bias = nullptr,
            *down_bias = nullptr;                                     // [experts, inner] twice, [experts, hidden]
  std::function<ir::Value*(ir::Value* gate, ir::Value* up)> combine;  // of [experts, tokens, inner]
};

// The sum of what the chosen experts make of x[batch, tokens, hidden], times their scores; `chosen` and `scores` are
// [batch, tokens, choices]. All experts are computed for all tokens.
ir::Value* mixture_of_experts(ir::GraphBuilder& c, ir::Value* x, ir::Value* chosen, ir::Value* scores,
                              const Experts& experts);

}  // namespace lathe
