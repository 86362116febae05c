// SPDX-License-Identifier: Apache-2.0
// Collective layers belong to the network, and a network with one is no engine for a single device.
#include "api/layers_world.h"

namespace nvinfer1::layers {
namespace {

TEST(Collectives, AreRefusedByTheBuild) {
  Net n;
  int64_t groups[] = {0, 1};
  ITensor& x = n.input(Dims2(2, 2));
  ILayer* layer =
      n.network->addDistCollective(x, CollectiveOperation::kALL_REDUCE, ReduceOperation::kSUM, -1, groups, 2);
  ASSERT_NE(layer, nullptr) << n.log.text();
  EXPECT_EQ(layer->getType(), LayerType::kDIST_COLLECTIVE);
  EXPECT_EQ(layer->getInput(0), &x);
  EXPECT_EQ(layer->getNbOutputs(), 1);
  layer->setName("the layer");
  n.network->markOutput(*layer->getOutput(0));
  EXPECT_FALSE(n.builds());
  EXPECT_NE(n.log.text().find("'the layer'"), std::string::npos) << n.log.text();
  EXPECT_NE(n.log.text().find("several GPUs"), std::string::npos) << n.log.text();
}

TEST(Collectives, ThatMakeNoSense) {
  struct Case {
    CollectiveOperation operation;
    ReduceOperation reduction;
    int64_t root;
    std::vector<int64_t> group;
  };
  using C = CollectiveOperation;
  using R = ReduceOperation;
  for (Case c : {Case{no_such<C>(), R::kSUM, -1, {}}, Case{C::kALL_REDUCE, no_such<R>(), -1, {}},
                 Case{C::kALL_REDUCE, R::kNONE, -1, {}}, Case{C::kALL_GATHER, R::kSUM, -1, {}},
                 Case{C::kBROADCAST, R::kNONE, -1, {}}, Case{C::kALL_TO_ALL, R::kNONE, 3, {}},
                 Case{C::kREDUCE, R::kSUM, 2, {0, 1}}, Case{C::kREDUCE_SCATTER, R::kMAX, -1, {0, 0}},
                 Case{C::kGATHER, R::kNONE, 0, {0, -1}}}) {
    Net n;
    EXPECT_EQ(n.network->addDistCollective(n.input(Dims2(2, 2)), c.operation, c.reduction, c.root,
                                           c.group.empty() ? nullptr : c.group.data(), std::ssize(c.group)),
              nullptr);
    EXPECT_EQ(n.log.errors.size(), 1u) << n.log.text();
    EXPECT_EQ(n.network->getNbLayers(), 0);
  }
  Net n;
  int64_t group = 0;
  EXPECT_EQ(n.network->addDistCollective(n.input(Dims2(2, 2)), C::kALL_GATHER, R::kNONE, -1, nullptr, 1), nullptr);
  EXPECT_EQ(n.network->addDistCollective(*n.network->getInput(0), C::kALL_GATHER, R::kNONE, -1, &group, -1), nullptr);
  EXPECT_EQ(n.log.errors.size(), 2u) << n.log.text();
}

}  // namespace
}  // namespace nvinfer1::layers
