// SPDX-License-Identifier: Apache-2.0
// Loops and branches of the IR, whose bodies are nested graphs of a model.
#pragma once

#include "onnx/node_context.h"

namespace lathe::onnx {

// The edge of a body whose inputs from `first` on are the nested graph's, all of them and its outputs being tensors.
BodyEdge edge_of_tensors(const GraphProto& proto, size_t first);

// Adds a loop of the IR and returns its results. `operands` are those besides what the body captures. None after an
// error, and where the edge has added no outputs to the body, because it wants another attempt.
std::vector<ir::Value*> add_loop(NodeContext& c, const LoopAttrs& attrs, std::vector<ir::Value*> operands,
                                 const GraphProto& proto, const BodyEdge& edge);

// A branch of the IR for a node If of equally many outputs in both graphs; false where no form of tensors holds what
// either graph yields for one of them.
bool add_branch(NodeContext& c, ir::Value* condition, const GraphProto& then_graph, const GraphProto& else_graph);

// A Loop of the IR that carries sequences, optionals or strings.
void add_slot_loop(NodeContext& c, const GraphProto& body, size_t num_carried);

// SequenceMap over sequences of unknown length.
void add_map_loop(NodeContext& c, const GraphProto& body);

}  // namespace lathe::onnx
