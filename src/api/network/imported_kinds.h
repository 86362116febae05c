// SPDX-License-Identifier: Apache-2.0
// Layers whose settings say what inputs of a node do, or what its constants hold.
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

// Each gives null for nodes that its class does not describe, and adopts the others.
std::unique_ptr<Layer> make_slice(NetworkDefinition& network, ir::Node* node);  // also pads, expansions and tiles
std::unique_ptr<Layer> make_reshape(NetworkDefinition& network, ir::Node* node);
std::unique_ptr<Layer> make_scale(NetworkDefinition& network, ir::Node* node);  // batch normalisations
std::unique_ptr<Layer> make_resize(NetworkDefinition& network, ir::Node* node);
std::unique_ptr<Layer> make_quantization(NetworkDefinition& network, ir::Node* node);
std::unique_ptr<Layer> make_reduction(NetworkDefinition& network, ir::Node* node);
std::unique_ptr<Layer> make_one_hot(NetworkDefinition& network, ir::Node* node);

// The integers of a constant; nullopt where it is none.
std::optional<Ints> known_ints(const ir::Value* value);
nv::Dims dims_of(const Ints& values);
uint32_t mask_of(const Ints& axes, int rank);

}  // namespace lathe::api
