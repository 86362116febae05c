// SPDX-License-Identifier: Apache-2.0
// The metadata section: a Plan without its target (which the header holds), its weights and its code, as FlatBuffers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace lathe::plan {

// Where images of device code lie in the code section: one after the other, each aligned. What the writer does and the
// reader demands.
struct CodePlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
class CodePlaces {
 public:
  CodePlace add(uint64_t bytes);
  uint64_t end() const { return end_; }

 private:
  uint64_t end_ = 0;
};

// The first field of every table that children() of fields.h writes.
inline constexpr uint16_t kParentField = 4;

Result<std::vector<std::byte>> encode_metadata(const Plan& plan);

// The plan's code images are windows into `code`. `bytes` must be 8-byte aligned in memory. Checks the form (verifier,
// budget, limits); validate() checks the meaning.
Result<Plan> decode_metadata(std::span<const std::byte> bytes, std::span<const std::byte> code);

}  // namespace lathe::plan
