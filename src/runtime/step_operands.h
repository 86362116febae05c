// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "device/tensor_arg.h"

namespace lathe {

// The operands of a step under the shapes of a context; addresses are those of the run in progress.
struct StepOperands {
  std::vector<TensorArg> inputs;
  std::vector<TensorArg> outputs;
  std::vector<int64_t> numbers;  // Operands::numbers
};

}  // namespace lathe
