// SPDX-License-Identifier: Apache-2.0
// The metadata section: a Plan without its target (which the header holds) and its weights, as FlatBuffers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

Result<std::vector<std::byte>> encode_metadata(const Plan& plan);

// `bytes` must be 8-byte aligned in memory. Checks the form (verifier, budget, limits); validate() checks the meaning.
Result<Plan> decode_metadata(std::span<const std::byte> bytes);

}  // namespace lathe::plan
