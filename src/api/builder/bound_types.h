// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of weakly typed networks whose memory has another type than the network computes in.
#pragma once

#include "api/network/network.h"
#include "ir/graph.h"

namespace lathe::api {

// Converts what ITensor::setType() says of. Between 8 bits and floats it goes by the tensor's range.
#if NV_TENSORRT_MAJOR < 11
Result<> apply_bound_types(const NetworkDefinition& network, ir::Graph& graph);
#else  // its networks are strongly typed
inline Result<> apply_bound_types(const NetworkDefinition&, ir::Graph&) { return {}; }
#endif

}  // namespace lathe::api
