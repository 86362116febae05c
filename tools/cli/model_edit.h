// SPDX-License-Identifier: Apache-2.0
// Changes to the inputs of a serialized ONNX model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::cli {

// A tensor, a sequence or an optional that may be one, and an optional that may be a tensor.
enum class InputKind : uint8_t { tensor, sequence, optional };

// Names of the graph's inputs that have no initializer, and of its outputs, in order, and what these inputs are. Throws
// Failure.
struct ModelNames {
  std::vector<std::string> inputs, outputs;
  std::vector<InputKind> kinds;
};
ModelNames names_of(std::string_view model);

// The model with these inputs as initializers instead. `tensors`: serialized TensorProto by input name.
std::string freeze_inputs(std::string_view model, const std::map<std::string, std::string>& tensors);

// The model with each size of its inputs as a parameter of its own, and no claim about other shapes. Lists of integers
// keep their length.
std::string open_shapes(std::string_view model);

}  // namespace lathe::cli
