// SPDX-License-Identifier: Apache-2.0
// What networks, layers and tensors tell of themselves, and what few programs ask of a network.
#include <gtest/gtest.h>

#include <memory>

#include "api/layers_world.h"

namespace nvinfer1::layers {
namespace {

TEST(NetworkQueries, TellsItsOrigin) {
  Net net;
  EXPECT_EQ(&net.network->getBuilder(), net.builder.get());
  EXPECT_FALSE(net.network->hasImplicitBatchDimension());
  const auto strongly = static_cast<uint32_t>(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
  const std::unique_ptr<INetworkDefinition> typed(net.builder->createNetworkV2(1u << strongly));
  EXPECT_EQ(typed->getFlags(), 1u << strongly);
  EXPECT_TRUE(typed->getFlag(NetworkDefinitionCreationFlag::kSTRONGLY_TYPED));
  EXPECT_FALSE(typed->getFlag(NetworkDefinitionCreationFlag::kPREFER_AOT_PYTHON_PLUGINS));
  typed->setName("twin");
  EXPECT_STREQ(typed->getName(), "twin");
}

TEST(NetworkQueries, TensorsAreRemovedWhenNothingReadsThem) {
  Net net;
  ITensor &kept = net.input(dims({2})), &unused = net.input(dims({3}));
  ILayer* relu = net.network->addActivation(kept, ActivationType::kRELU);
  net.network->removeTensor(unused);
  EXPECT_EQ(net.network->getNbInputs(), 1);
  EXPECT_TRUE(net.log.errors.empty()) << net.log.text();
  net.network->removeTensor(kept);
  EXPECT_EQ(net.network->getNbInputs(), 1);
  EXPECT_NE(net.log.text().find("still in use"), std::string::npos) << net.log.text();
  net.network->markOutput(*relu->getOutput(0));
  EXPECT_TRUE(kept.isNetworkInput());
  EXPECT_FALSE(kept.isNetworkOutput());
  EXPECT_FALSE(relu->getOutput(0)->isNetworkInput());
  EXPECT_TRUE(relu->getOutput(0)->isNetworkOutput());
  net.network->unmarkOutput(*relu->getOutput(0));
  EXPECT_EQ(net.network->getNbOutputs(), 0);
}

TEST(NetworkQueries, OldTensorSettingsKeepTheirDefaults) {
  Net net;
  const ITensor& x = net.input(dims({2}));
  EXPECT_FALSE(x.getBroadcastAcrossBatch());
  EXPECT_EQ(x.getLocation(), TensorLocation::kDEVICE);
  EXPECT_EQ(x.getAllowedFormats(), (1u << EnumMax<TensorFormat>()) - 1);
}

TEST(NetworkQueries, LoopOutputsTellTheirKind) {
  Net net;
  ITensor& x = net.input(dims({2}));
  ILoop* loop = net.network->addLoop();
  IRecurrenceLayer* carried = loop->addRecurrence(x);
  EXPECT_EQ(loop->addLoopOutput(*carried->getOutput(0), LoopOutput::kLAST_VALUE)->getLoopOutput(),
            LoopOutput::kLAST_VALUE);
  EXPECT_EQ(loop->addLoopOutput(*carried->getOutput(0), LoopOutput::kCONCATENATE)->getLoopOutput(),
            LoopOutput::kCONCATENATE);
}

TEST(NetworkQueries, LayersTellTheTypesOfTheirOutputs) {
  Net net;
  ITensor& x = net.input(dims({4}));
  EXPECT_EQ(net.network->addCast(x, DataType::kINT32)->getOutputType(0), DataType::kINT32);
  ITopKLayer* top = net.network->addTopK(x, TopKOperation::kMAX, 2, 1);
  EXPECT_EQ(top->getOutputType(0), DataType::kFLOAT);
  EXPECT_EQ(top->getOutputType(1), DataType::kINT32);
}

// Inputs count from -2.
TEST(NetworkQueries, RareLayersComputeWhatTheySay) {
  {
    Net net;
    ITensor& x = net.input(dims({4}));
    EXPECT_EQ(net.result(*net.network->addParametricReLU(x, net.constant(dims({4}), {0.5f, 3, 3, 3}))),
              "f32[4]: -1 -3 0 1");
  }
  {
    Net net;
    ITensor &condition = *net.network->addCast(net.input(dims({3})), DataType::kBOOL)->getOutput(0),
            &then = net.constant(dims({3}), {1, 2, 3}), &otherwise = net.constant(dims({3}), {7, 8, 9});
    EXPECT_EQ(net.result(*net.network->addSelect(condition, then, otherwise)), "f32[3]: 1 2 9");
  }
  {
    Net net;
    ITensor& x = net.input(dims({2, 1}));
    ILayer* wide = net.network->addUnsqueeze(x, net.numbers({0, 2}));
    EXPECT_EQ(net.result(*wide), "f32[1, 2, 1, 1]: -2 -1");
    EXPECT_EQ(net.result(*net.network->addSqueeze(*wide->getOutput(0), net.numbers({0, 3}))),
              "f32[1, 2, 1, 1]: -2 -1; f32[2, 1]: -2 -1");
  }
  {
    Net net;
    ITensor& x = net.input(dims({1, 1, 2}));
    INormalizationLayer* norm = net.network->addNormalizationV2(x, net.constant(dims({1, 1, 1}), {2}),
                                                                net.constant(dims({1, 1, 1}), {1}), 1u << 2);
    EXPECT_TRUE(norm->isV2());
    norm->setEpsilon(0);
    EXPECT_EQ(net.result(*norm), "f32[1, 1, 2]: -1 3");
  }
}

}  // namespace
}  // namespace nvinfer1::layers
