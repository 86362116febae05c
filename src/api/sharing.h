// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lathe.h"
#include "plan/shared_weights.h"

namespace lathe::api {

inline plan::Sharing sharing_of(VariantWeights weights) {
  return weights == VariantWeights::kSTORED ? plan::Sharing::equal : plan::Sharing::derived;
}

}  // namespace lathe::api
