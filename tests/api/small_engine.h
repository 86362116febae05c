// SPDX-License-Identifier: Apache-2.0
// A network of a few layers.
#pragma once

#include "api/network_fixture.h"

namespace nvinfer1 {

// y = relu(x * w + b) over x[n, 3], n in [1, 8].
class EngineTest : public NetworkTest {
 protected:
  void SetUp() override {
    const Dims2 dims(-1, 3);
    ITensor* x = network->addInput("x", DataType::kFLOAT, dims);
    auto* weights = network->addConstant(Dims2(3, 2), Weights{DataType::kFLOAT, w, 6});
    auto* product =
        network->addMatrixMultiply(*x, MatrixOperation::kNONE, *weights->getOutput(0), MatrixOperation::kNONE);
    auto* bias = network->addConstant(Dims2(1, 2), Weights{DataType::kFLOAT, b, 2});
    auto* sum = network->addElementWise(*product->getOutput(0), *bias->getOutput(0), ElementWiseOperation::kSUM);
    auto* relu = network->addActivation(*sum->getOutput(0), ActivationType::kRELU);
    mark(relu->getOutput(0), "y");
    add_profile({{"x", Dims2(1, 3), Dims2(4, 3), Dims2(8, 3)}});
  }

  const float w[6] = {1, 0, 0, 1, 1, 1};
  const float b[2] = {0, -10};
};

}  // namespace nvinfer1
