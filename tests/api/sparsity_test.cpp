// SPDX-License-Identifier: Apache-2.0
// Networks whose weights are 2:4 sparse.
#include <cmath>
#include <random>

#include "api/network_fixture.h"
#include "api/target.h"

namespace nvinfer1 {
namespace {

class SparseWeights : public NetworkTest {
 protected:
  static constexpr int64_t kRows = 4, kColumns = 32;

  void SetUp() override {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (float& value : x_) value = normal(random);
    for (size_t i = 0; i < w_.size(); ++i) w_[i] = i / kColumns % 4 < 2 ? normal(random) : 0;
    logger.most = ILogger::Severity::kINFO;
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(kRows, kColumns));
    ITensor* w = network->addConstant(Dims2(kColumns, kColumns), {DataType::kFLOAT, w_.data(), kColumns * kColumns})
                     ->getOutput(0);
    IMatrixMultiplyLayer* product = network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE);
    product->setName("product");
    mark(product->getOutput(0), "y");
    ASSERT_TRUE(lathe::setPrecision(*config, DataType::kHALF));
  }
  std::vector<float> build_and_run() {
    logger.text.clear();
    const bool is_made = make_context();
    EXPECT_TRUE(is_made) << logger.last();
    if (!is_made) return {};
    std::vector<float> y(x_.size());
    EXPECT_TRUE(context->setTensorAddress("x", x_.data()) && context->setTensorAddress("y", y.data()));
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    return y;
  }
  // Whether the last build said so.
  bool told(std::string_view text) const {
    for (const std::string& line : logger.text)
      if (line.find(text) != std::string::npos) return true;
    return false;
  }

  std::vector<float> w_ = std::vector<float>(kColumns * kColumns), x_ = std::vector<float>(kRows * kColumns);
};

TEST_F(SparseWeights, KeepTheirResults) {
  const std::vector<float> dense = build_and_run();
  EXPECT_FALSE(told("parsity"));
  config->setFlag(BuilderFlag::kSPARSE_WEIGHTS);
  const std::vector<float> sparse = build_and_run();
  ASSERT_EQ(sparse.size(), dense.size());
  for (size_t i = 0; i < dense.size(); ++i) EXPECT_NEAR(sparse[i], dense[i], 2e-2f * (1 + std::fabs(dense[i])));
  EXPECT_EQ(told("(Sparsity) Found 1 layer(s) eligible to use sparse tactics: product"), on_gpu());
  EXPECT_EQ(told("kSPARSE_WEIGHTS has no effect: no kernel of this device leaves out zeros"), !on_gpu());
}

TEST_F(SparseWeights, AreNoneWhereZerosMakeNaN) {
  config->setFlag(BuilderFlag::kSPARSE_WEIGHTS);
  config->setFlag(BuilderFlag::kSTRICT_NANS);
  build_and_run();
  EXPECT_EQ(told("kSPARSE_WEIGHTS has no effect: a zero that is left out makes no NaN"), on_gpu());
  EXPECT_FALSE(told("(Sparsity)"));
}

TEST_F(SparseWeights, AreNoneWhereTheyCanBeReplaced) {
  config->setFlag(BuilderFlag::kSPARSE_WEIGHTS);
  config->setFlag(BuilderFlag::kREFIT);
  build_and_run();
  EXPECT_EQ(told("(Sparsity) Found 0 layer(s)"), on_gpu());
}

TEST_F(SparseWeights, ThatAreForcedChangeResults) {
  for (size_t i = 0; i < w_.size(); ++i) w_[i] = static_cast<float>(i / kColumns % 4 + 1);  // 1 and 2 will go
  ASSERT_TRUE(lathe::setForcedSparsity(*config, true));
  const std::vector<float> got = build_and_run();
  EXPECT_TRUE(told("setForcedSparsity() has pruned the weights of 1 layer(s)"));
  for (size_t row = 0; row < kRows; ++row) {
    float expected = 0;
    for (size_t k = 0; k < kColumns; ++k)
      expected += k % 4 < 2 ? 0 : x_[row * kColumns + k] * static_cast<float>(k % 4 + 1);
    EXPECT_NEAR(got[row * kColumns], expected, 2e-2f * (1 + std::fabs(expected)));
  }
  config->setFlag(BuilderFlag::kREFIT);
  EXPECT_EQ(std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config)), nullptr);
  EXPECT_TRUE(told("setForcedSparsity() prunes weights, and flags of refitting let others take their place"));
}

}  // namespace
}  // namespace nvinfer1
