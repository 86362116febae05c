// SPDX-License-Identifier: Apache-2.0
// The metadata section: a Plan without its target (which the header holds) and its weights, as FlatBuffers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// Where a code module lies in the code section.
struct CodePlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
// One after the other, each aligned; what the writer does and the reader demands.
std::vector<CodePlace> place_codes(const Plan& plan);

Result<std::vector<std::byte>> encode_metadata(const Plan& plan);

// The plan's code modules are windows into `code`. `bytes` must be 8-byte aligned in memory. Checks the form (verifier,
// budget, limits); validate() checks the meaning.
Result<Plan> decode_metadata(std::span<const std::byte> bytes, std::span<const std::byte> code);

}  // namespace lathe::plan
