// SPDX-License-Identifier: Apache-2.0
// A float network that a calibration cache quantises.
#include <cmath>
#include <random>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

constexpr const char* kCache = "TRT-8503-EntropyCalibration2\nhidden: 3d010204\nx: 3ccda905\n";  // 4 and 3.2 / 127

class CalibrationCaches : public NetworkTest {
 protected:
  static constexpr int64_t kRows = 4, kColumns = 16;

  void SetUp() override {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (auto* values : {&w_, &v_, &x_})
      for (float& value : *values) value = normal(random) * (values == &x_ ? 1.0f : 0.2f);
    logger.most = ILogger::Severity::kWARNING;
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(kRows, kColumns));
    ITensor* hidden = network->addActivation(*multiply(*x, w_), ActivationType::kRELU)->getOutput(0);
    hidden->setName("hidden");
    mark(multiply(*hidden, v_), "y");
  }
  ITensor* multiply(ITensor& x, const std::vector<float>& weights) {
    ITensor* w =
        network->addConstant(Dims2(kColumns, kColumns), {DataType::kFLOAT, weights.data(), kColumns * kColumns})
            ->getOutput(0);
    // As exporters do: the weights are transposed twice, which is folded.
    auto* transposed = network->addShuffle(*w);
    transposed->setFirstTranspose({{1, 0}});
    return network->addMatrixMultiply(x, MatrixOperation::kNONE, *transposed->getOutput(0), MatrixOperation::kTRANSPOSE)
        ->getOutput(0);
  }
  std::vector<float> build_and_run() {
    const bool is_made = make_context();
    EXPECT_TRUE(is_made) << logger.last();
    if (!is_made) return {};
    std::vector<float> y(x_.size());
    EXPECT_TRUE(context->setTensorAddress("x", x_.data()) && context->setTensorAddress("y", y.data()));
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    return y;
  }
  bool set(const std::string& text) { return lathe::setCalibrationCache(*config, text.data(), text.size()); }
  void expect_told(std::initializer_list<const char*> texts) {
    ASSERT_EQ(logger.text.size(), texts.size()) << logger.last();
    size_t i = 0;
    for (const char* text : texts) EXPECT_NE(logger.text[i].find(text), std::string::npos) << logger.text[i], ++i;
    logger.text.clear();
  }
  // Whether the target multiplies integers.
  bool has_integers() const {
    const std::unique_ptr<IHostMemory> report(lathe::buildReportJson(*builder));
    return std::string_view(static_cast<const char*>(report->data()), report->size()).find("i8[") !=
           std::string_view::npos;
  }

  std::vector<float> w_ = std::vector<float>(kColumns * kColumns), v_ = w_, x_ = std::vector<float>(kRows * kColumns);
};

TEST_F(CalibrationCaches, QuantiseTheNetwork) {
  const std::vector<float> floats = build_and_run();
  EXPECT_FALSE(has_integers());
  ASSERT_TRUE(set(kCache) && lathe::setInt8(*config, true));
  const std::vector<float> levels = build_and_run();
  if (!has_integers()) {  // a processor without such instructions
    expect_told({"the target multiplies floats only"});
    return;
  }
  EXPECT_TRUE(logger.text.empty()) << logger.last();
  float largest = 0, difference = 0;
  for (size_t i = 0; i < floats.size(); ++i) {
    largest = std::max(largest, std::fabs(floats[i]));
    difference = std::max(difference, std::fabs(floats[i] - levels[i]));
  }
  EXPECT_LT(difference, 0.05f * largest);
  EXPECT_GT(difference, 0);
}

TEST_F(CalibrationCaches, WithoutInt8HaveNoEffect) {
  const std::vector<float> floats = build_and_run();
  ASSERT_TRUE(set(kCache));
  EXPECT_EQ(build_and_run(), floats);
  expect_told({"have no effect: int8 is not asked for"});
  ASSERT_TRUE(set(""));
  EXPECT_EQ(build_and_run(), floats);
  expect_told({});
}

TEST_F(CalibrationCaches, ThatLackTensorsLeaveTheirLayersInFloats) {
  const std::vector<float> floats = build_and_run();
  ASSERT_TRUE(set("TRT-101600-MinMaxCalibration\nsomething: 3f000000\n") && lathe::setInt8(*config, true));
  EXPECT_EQ(build_and_run(), floats);
  ASSERT_EQ(logger.text.size(), 1u);
  EXPECT_TRUE(logger.last().find("2 tensors have no range") != std::string::npos ||
              logger.last().find("the target multiplies floats only") != std::string::npos)
      << logger.last();
}

TEST_F(CalibrationCaches, ThatAreNoneAreRefused) {
  EXPECT_FALSE(set("images: 3c010a14"));
  EXPECT_NE(std::string(lathe::lastError()).find("line 1 of the calibration cache"), std::string::npos);
  ASSERT_TRUE(lathe::setInt8(*config, true));
  build_and_run();
  expect_told({"int8 is asked for, but the network has no quantize and dequantize layers"});
}

}  // namespace
}  // namespace nvinfer1
