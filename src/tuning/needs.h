// SPDX-License-Identifier: Apache-2.0
// The memory that a step needs while it runs.
#pragma once

#include <cstdint>
#include <span>

#include "device/device.h"
#include "tuning/tactic.h"

namespace lathe {

struct MemoryNeeds {
  size_t workspace = 0;  // bytes that its launches share
  size_t shared = 0;     // bytes of shared memory of a block (device code)
  size_t taken = 0;  // bytes that its kernel makes of constants (TakesConstants), which it holds as long as it lives
};

// The tensor as the step reads it.
TensorArg as_read(const StepInput& input, TensorArg arg);

// What measuring takes of the device's memory: the problem's operands, which its trials share, and what a trial has
// besides.
size_t operand_bytes(const Problem& problem);
Result<size_t> trial_bytes(const Problem& problem, const Emission& emission, Device* device);

// With those values of the problem's symbols. `device` runs steps without device code, and is asked for their
// workspace.
Result<MemoryNeeds> needs_of(const Problem& problem, const Emission& emission, std::span<const int64_t> symbols,
                             Device* device);

}  // namespace lathe
