// SPDX-License-Identifier: Apache-2.0
// Steps of open sizes whose tiles differ with the size: each run launches those for its own, and the others' grids are
// empty.
#include <cmath>

#include "NvInfer.h"
#include "device/cuda/driver.h"
#include "device/cuda/enqueue_fixture.h"
#include "fake_cuda/fake_device.h"
#include "lathe.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kDepth = 32, kColumns = 1024, kFewest = 4, kUsual = 32, kMost = 512;

// y = x w, of a product whose tiles the cost model chooses.
class FormsBySizeTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    for (int64_t i = 0; i < kDepth * kColumns; ++i) weights_.push_back(std::sin(static_cast<float>(i)));
    x_ = *device_->allocate(kMost * kDepth * sizeof(float));
    y_ = *device_->allocate(kMost * kColumns * sizeof(float));
    make_engine();
    ASSERT_NE(engine_, nullptr) << log_.text;
    const std::unique_ptr<nv::IEngineInspector> inspector(engine_->createEngineInspector());
    layer_ = inspector->getLayerInformation(0, nv::LayerInformationFormat::kJSON);
  }

  void make_engine() {
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(-1, kDepth));
    nv::ITensor* w =
        network->addConstant(nv::Dims2(kDepth, kColumns), {nv::DataType::kFLOAT, weights_.data(), kDepth * kColumns})
            ->getOutput(0);
    nv::ITensor* y =
        network->addMatrixMultiply(*x, nv::MatrixOperation::kNONE, *w, nv::MatrixOperation::kNONE)->getOutput(0);
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    config->setProfilingVerbosity(nv::ProfilingVerbosity::kDETAILED);
    build_engine(*builder, *network, *config, *y, {{kFewest, kDepth}, {kUsual, kDepth}, {kMost, kDepth}});
  }

  void make_context(nv::DynamicShapesKernelSpecializationStrategy strategy) {
    const std::unique_ptr<nv::IRuntimeConfig> config(engine_->createRuntimeConfig());
    config->setDynamicShapesKernelSpecializationStrategy(strategy);
    context_.reset(engine_->createExecutionContext(config.get()));
    ASSERT_NE(context_, nullptr) << log_.text;
    context_->setTensorAddress("x", x_.data());
    context_->setTensorAddress("y", y_.data());
  }

  // Compares all results, and gives them.
  std::vector<float> run(int64_t rows) {
    auto* x = reinterpret_cast<float*>(x_.data());
    auto* y = reinterpret_cast<float*>(y_.data());
    for (int64_t i = 0; i < rows * kDepth; ++i) x[i] = std::cos(static_cast<float>(rows + i));
    std::fill(y, y + kMost * kColumns, -1.0F);
    EXPECT_TRUE(context_->setInputShape("x", nv::Dims2(rows, kDepth)));
    EXPECT_TRUE(context_->enqueueV3(nullptr)) << log_.text;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t n = 0; n < kColumns; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) sum += x[r * kDepth + k] * weights_[static_cast<size_t>(k * kColumns + n)];
        EXPECT_NEAR(y[r * kColumns + n], sum, 1e-4) << rows << ": " << r << " " << n;
        if (HasFailure()) return {};
      }
    EXPECT_EQ(rows == kMost ? -1.0F : y[rows * kColumns], -1.0F) << "nothing is written behind them";
    return {y, y + rows * kColumns};
  }

  std::string layer_;
};

// At both sides of each border between two forms.
TEST_F(FormsBySizeTest, EachSizeHasOneForm) {
  ASSERT_NE(layer_.find(" elements, "), std::string::npos) << layer_;
  using Strategy = nv::DynamicShapesKernelSpecializationStrategy;
  std::map<int64_t, std::vector<float>> open;
  make_context(Strategy::kNONE);
  for (const int64_t rows : {8, 9, 32, 33, 81, 82}) {
    const size_t before = fake_cuda_launches();
    open[rows] = run(rows);
    ASSERT_EQ(fake_cuda_launches(), before + 1) << rows << ": " << layer_;
  }
  make_context(Strategy::kEAGER);
  for (const auto& [rows, wanted] : open) EXPECT_EQ(run(rows), wanted) << rows;
}

}  // namespace
}  // namespace lathe::cuda
