// SPDX-License-Identifier: Apache-2.0
// Reads TypeProto messages.
#pragma once

#include "onnx/model.h"
#include "onnx/wire.h"

namespace lathe::onnx {

// Merges the message into `type`. What is wrong is left in the cursor's state.
void read_type(WireCursor cursor, TypeProto& type);

}  // namespace lathe::onnx
