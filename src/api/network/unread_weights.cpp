// SPDX-License-Identifier: Apache-2.0
#include "api/network/unread_weights.h"

#include "api/network/network.h"

namespace lathe::api {

UnreadWeights::UnreadWeights(const NetworkDefinition& network) : network_(network), copies_(network.copies()) {}

void UnreadWeights::forget() {
  network_.forget_pages();
  copies_.forget();
}

}  // namespace lathe::api
