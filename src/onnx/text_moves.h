// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, whatever these are, for tensors of strings.
#pragma once

#include "onnx/importer.h"

namespace lathe::onnx {

// Whether each element of the operator's first inputs and outputs is moved as it is, and none is looked at.
bool moves_elements(std::string_view op);

// Imports such a node, some of whose inputs are strings: numbers of strings are moved in their place.
void import_by_codes(NodeContext& c, const ImporterRow& row);

}  // namespace lathe::onnx
