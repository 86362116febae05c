// SPDX-License-Identifier: Apache-2.0
// A layer is added first and described afterwards, in any order: what does not fit is judged when somebody looks.
#include <algorithm>

#include "api/layers_world.h"

namespace nvinfer1::layers {
namespace {

TEST(LayersInTwoBreaths, GroupsComeAfterGroupedWeights) {
  Net n;
  auto* depthwise = n.network->addConvolutionNd(n.input(Dims4(1, 2, 1, 2)), 2, DimsHW(1, 1), n.weights({10, 100}), {});
  ASSERT_NE(depthwise, nullptr) << n.log.text();
  depthwise->setNbGroups(2);
  EXPECT_EQ(n.result(*depthwise), "f32[1, 2, 1, 2]: -20 -10 0 100");
  auto* up = n.network->addDeconvolutionNd(*depthwise->getOutput(0), 2, DimsHW(1, 1), n.weights({1, 2}), {});
  up->setNbGroups(2);
  EXPECT_TRUE(same(up->getOutput(0)->getDimensions(), Dims4(1, 2, 1, 2)));
  EXPECT_TRUE(n.log.errors.empty()) << n.log.text();
}

TEST(LayersInTwoBreaths, SettersOfAConvolutionComeInAnyOrder) {
  const std::vector<std::function<void(Net&, IConvolutionLayer&)>> setters = {
      CALL(setNbOutputMaps(4)),
      CALL(setNbGroups(2)),
      CALL(setKernelSizeNd(DimsHW(1, 2))),
      CALL(setKernelWeights(n.weights({1, 2, 3, 4, 5, 6, 7, 8}))),
      CALL(setBiasWeights(n.weights({0, 100, 200, 300}))),
      CALL(setPaddingNd(DimsHW(0, 1))),
      CALL(setStrideNd(DimsHW(1, 2))),
  };
  std::vector<size_t> order(setters.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    Net n;
    auto* layer = n.network->addConvolutionNd(n.input(Dims4(1, 2, 1, 2)), 1, DimsHW(1, 1), n.weights({1, 1}), {});
    for (const size_t i : order) {
      setters[i](n, *layer);
      if (i == 2) layer->getNbGroups();  // a getter does not judge
    }
    ASSERT_EQ(n.result(*layer), "f32[1, 4, 1, 2]: -4 -1 92 97 200 205 300 307");
    ASSERT_TRUE(n.log.errors.empty()) << n.log.text();
  } while (std::next_permutation(order.begin(), order.begin() + 5));
}

TEST(LayersInTwoBreaths, AxesAndOperationsComeAfterTheInputs) {
  Net n;
  ITensor& x = n.input(Dims2(2, 1));
  auto* product = n.network->addMatrixMultiply(x, MatrixOperation::kNONE, x, MatrixOperation::kNONE);
  product->setOperation(1, MatrixOperation::kTRANSPOSE);
  EXPECT_EQ(n.result(*product), "f32[2, 2]: 4 2 2 1");
  Net m;
  ITensor* rows[] = {&m.input(Dims2(1, 2)), &m.constant(Dims2(2, 2), {1, 2, 3, 4})};
  auto* joined = m.network->addConcatenation(rows, 2);
  ITensor* sides[] = {rows[0], &m.constant(Dims2(1, 1), {7})};
  auto* wider = m.network->addConcatenation(sides, 2);
  wider->setAxis(1);
  EXPECT_EQ(m.result(*joined), "f32[3, 2]: -2 -1 1 2 3 4");  // rank 2: along dimension 0 unless set
  EXPECT_TRUE(same(wider->getOutput(0)->getDimensions(), Dims2(1, 3)));
  Net s;
  auto* scaled = s.network->addScale(s.input(dims({1, 1, 2})), ScaleMode::kCHANNEL, {}, s.weights({3, 5}), {});
  scaled->setChannelAxis(2);
  EXPECT_EQ(s.result(*scaled), "f32[1, 1, 2]: -6 -5");
  for (const Net* each : {&n, &m, &s}) EXPECT_TRUE(each->log.errors.empty()) << each->log.text();
}

TEST(LayersInTwoBreaths, InputsReplaceWhatWasNotGiven) {
  Net n;
  auto* slice = n.network->addSlice(n.input(dims({4})), {}, {}, {});
  slice->setInput(1, n.numbers({1}));
  slice->setInput(2, n.numbers({2}));
  slice->setStride(dims({1}));
  EXPECT_EQ(n.result(*slice), "f32[2]: -1 0");
  Net f;
  auto* fill = f.network->addFill({}, FillOperation::kLINSPACE, DataType::kINT64);
  fill->setInput(0, f.numbers({3}));
  fill->setAlphaInt64(5);
  fill->setBetaInt64(2);
  EXPECT_EQ(f.result(*fill), "i64[3]: 5 7 9");
  for (const Net* each : {&n, &f}) EXPECT_TRUE(each->log.errors.empty()) << each->log.text();
}

TEST(LayersInTwoBreaths, ReadersFollowWhatIsMendedBeforeThem) {
  Net n;
  auto* x = n.network->addMatrixMultiply(n.input(Dims2(2, 3)), MatrixOperation::kNONE, n.input(Dims2(2, 3)),
                                         MatrixOperation::kNONE);
  x->setName("product");
  auto* y = n.network->addActivation(*x->getOutput(0), ActivationType::kRELU);
  y->getOutput(0)->setName("y");
  n.network->markOutput(*y->getOutput(0));
  EXPECT_EQ(y->getOutput(0)->getDimensions().nbDims, -1);
  ASSERT_EQ(n.log.errors.size(), 1u);
  EXPECT_NE(n.log.text().find("layer 'product'"), std::string::npos) << n.log.text();
  EXPECT_FALSE(n.builds());
  EXPECT_EQ(n.log.errors.size(), 2u) << n.log.text();
  x->setOperation(1, MatrixOperation::kTRANSPOSE);
  EXPECT_TRUE(same(y->getOutput(0)->getDimensions(), Dims2(2, 2)));
  EXPECT_TRUE(n.builds()) << n.log.text();
  EXPECT_EQ(n.log.errors.size(), 2u) << n.log.text();
}

}  // namespace
}  // namespace nvinfer1::layers
