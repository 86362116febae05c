// SPDX-License-Identifier: Apache-2.0
// Attentions of the network that became several steps.
#pragma once

#include "api/network/network.h"
#include "base/log.h"
#include "lowering/build.h"

namespace lathe::api {

// Warns of each that may not be split (IAttention::setDecomposable()) and was, for no kernel takes it whole.
void warn_of_composed_attention(const NetworkDefinition& network, const BuildReport& report, Log& log);

}  // namespace lathe::api
