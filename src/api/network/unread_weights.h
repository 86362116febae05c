// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/aligned_copies.h"

namespace lathe::api {

class NetworkDefinition;

// While it lives, nobody reads the weights of a network that nothing else has a handle of.
class UnreadWeights {
 public:
  explicit UnreadWeights(const NetworkDefinition& network);
  // Gives back what can be fetched again: pages of the model's files, and copies of what lies askew there.
  void forget();

 private:
  const NetworkDefinition& network_;
  onnx::UnreadCopies copies_;
};

}  // namespace lathe::api
