// SPDX-License-Identifier: Apache-2.0
// Shapes that a model declares, beside those that its nodes yield.
#pragma once

#include <optional>
#include <string>

#include "onnx/model.h"
#include "shape/expr.h"

namespace lathe::onnx {

// What to say of an output that no sizes make what it is declared to be.
std::optional<std::string> contradiction(std::string_view output, const TypeProto& declared, const Shape& shape);

}  // namespace lathe::onnx
