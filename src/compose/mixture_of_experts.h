// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ir/builder.h"

namespace lathe {

// Gated linear units, one for each expert: down(f(gate(x), up(x))); or down(f(gate(x))), where there is no `up`.
struct Experts {
  ir::Value *gate, *up, *down;  // weights: [experts, hidden, inner] twice, [experts, inner, hidden]
  ir::Value *gate_bias = nullptr, *up_bias = nullptr,
            *down_bias = nullptr;  // [experts, inner] twice, [experts, hidden]
  bool transposed = false;         // the last two dimensions of weights have changed places
  // Of [tokens..., choices, inner]; `numbers` says whose rows they are: [tokens..., choices].
  std::function<ir::Value*(ir::Value* gate, ir::Value* up, ir::Value* numbers)> combine = {};
};

// The sum of what the chosen experts make of x[tokens..., hidden], times their scores; `chosen` and `scores` are
// [tokens..., choices]. A choice that is no expert's number adds nothing. No other expert is computed.
ir::Value* mixture_of_experts(ir::GraphBuilder& c, ir::Value* x, ir::Value* chosen, ir::Value* scores,
                              const Experts& experts);

}  // namespace lathe
