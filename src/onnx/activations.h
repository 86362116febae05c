// SPDX-License-Identifier: Apache-2.0
// ONNX's activations by name, which operators that end in one name by an attribute, too.
#pragma once

#include <string_view>

#include "onnx/node_context.h"

namespace lathe::onnx {

// Names of the attributes that become alpha and beta, with their defaults; "" = none.
struct ActivationRow {
  std::string_view name;
  ActivationOp op;
  std::string_view alpha_name;
  double alpha;
  std::string_view beta_name;
  double beta;
};

const ActivationRow* find_activation(std::string_view name);  // null = unknown

}  // namespace lathe::onnx
