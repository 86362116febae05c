// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of weakly typed networks whose memory has another type than the network computes in.
#pragma once

#include "api/network/network.h"
#include "ir/graph.h"

namespace lathe::api {

// Converts inputs and outputs between the type that ITensor::setType() gave their memory and the network's: by casts,
// and between INT8 and floats by the tensor's dynamic range, without which it fails.
#if NV_TENSORRT_MAJOR < 11
Result<> apply_bound_types(const NetworkDefinition& network, ir::Graph& graph);
#else  // its networks are strongly typed
inline Result<> apply_bound_types(const NetworkDefinition&, ir::Graph&) { return {}; }
#endif

}  // namespace lathe::api
