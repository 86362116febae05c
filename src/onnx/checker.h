// SPDX-License-Identifier: Apache-2.0
// The rules of the ONNX specification that hold for any operator.
#pragma once

#include "base/result.h"
#include "onnx/model.h"

namespace lathe::onnx {

// What this reader knows: ONNX release 1.22.
inline constexpr int64_t kOldestIrVersion = 3;
inline constexpr int64_t kNewestIrVersion = 13;
inline constexpr int64_t kNewestOpset = 27;

// All violations of the model: one error, or several as its notes.
Result<> check_model(const Model& model);

// Where "node 12 'conv1' (Conv)" is needed in a message.
std::string describe(const NodeProto& node, size_t index);

}  // namespace lathe::onnx
