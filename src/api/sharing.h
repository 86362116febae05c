// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lathe.h"
#include "plan/shared_weights.h"

namespace lathe::api {

inline Result<plan::Sharing> sharing_of(VariantWeights weights) {
  if (weights < VariantWeights::kDERIVED || weights > VariantWeights::kSTORED)
    return fail(ErrorCode::invalid_argument, "{} is no value of VariantWeights", static_cast<int32_t>(weights));
  return weights == VariantWeights::kSTORED ? plan::Sharing::equal : plan::Sharing::derived;
}

}  // namespace lathe::api
