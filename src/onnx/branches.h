// SPDX-License-Identifier: Apache-2.0
// Which branch of an If becomes a part of the graph, where only one can.
#pragma once

#include <map>
#include <string>

namespace lathe::onnx {

// By the name of an If whose branches yield tensors of different ranks: whether its condition is taken to be true. As a
// value has one rank, the graph holds one branch and relies on the condition (op `choose` that leaves the other out).
// PyTorch writes such an If for `x.squeeze(0)` of an open dimension.
using Branches = std::map<std::string, bool>;

}  // namespace lathe::onnx
