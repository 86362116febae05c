// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/network/layer.h"

namespace lathe::api {

// The layer that stands for a node which an importer added.
std::unique_ptr<Layer> make_imported_layer(NetworkDefinition& network, ir::Node* node);

}  // namespace lathe::api
