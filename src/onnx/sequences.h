// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals in control flow, as far as it is resolved while importing.
#pragma once

#include "onnx/node_context.h"

namespace lathe::onnx {

// Whether some output of a nested graph is declared to be no tensor of numbers.
bool yields_no_tensor(const GraphProto& graph);

// condition ? yes : no, both of them computed. Their sizes may differ, their numbers of dimensions may not.
ir::Value* choose_value(NodeContext& c, ir::Value* condition, ir::Value* yes, ir::Value* no);

// Writes out a Loop that carries sequences, optionals or strings, round by round. False where what ends it is not
// known, or where it has too many rounds: no outputs are set then, and the nodes of rounds that were written are dead.
bool write_loop_out(NodeContext& c, const GraphProto& body, size_t num_carried);

}  // namespace lathe::onnx
