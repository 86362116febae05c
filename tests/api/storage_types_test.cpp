// SPDX-License-Identifier: Apache-2.0
// Types of few bits through the public interface: constants, layers, inputs and outputs.
#include <cstring>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

// A network of its own, whose inputs and outputs are given and taken as bytes.
class StorageTypes : public NetworkTest {
 protected:
  ITensor& scalar(float value) {
    kept.push_back(std::make_unique<float>(value));
    return *network->addConstant(Dims{0, {}}, Weights{DataType::kFLOAT, kept.back().get(), 1})->getOutput(0);
  }
  template <class T>
  std::vector<T> output(const char* name, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(context->setTensorAddress(name, values.data()));
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    return values;
  }

  std::vector<std::unique_ptr<float>> kept;
};

using V = std::vector<float>;

TEST_F(StorageTypes, AreQuantizedDequantizedAndCast) {
  const std::pair<DataType, V> cases[] = {
      {DataType::kFP8, {0.203125f, 0.3125f, 0.75f, -96, 1.125f, 2, 3, 224}},
      {DataType::kINT4, {0, 0.5f, 1, -4, 1, 2, 3, 3.5f}},
      {DataType::kFP4, {0.25f, 0.25f, 0.75f, -3, 1, 2, 3, 3}},
      {lathe::kUINT2, {0, 0.5f, 1, 0, 1, 1.5f, 1.5f, 1.5f}},
  };
  for (const auto& [type, want] : cases) {
    network.reset(builder->createNetworkV2(0));
    ITensor& x = *network->addInput("x", DataType::kFLOAT, Dims2(2, 4));
    IQuantizeLayer* q = network->addQuantize(x, scalar(0.5f), type);
    ASSERT_NE(q, nullptr) << logger.last();
    EXPECT_EQ(q->getOutput(0)->getType(), type);
    IDequantizeLayer* y = network->addDequantize(*q->getOutput(0), scalar(0.5f), DataType::kFLOAT);
    ASSERT_NE(y, nullptr) << logger.last();
    mark(y->getOutput(0), "y");
    ASSERT_TRUE(make_context()) << logger.last();
    float values[] = {0.2f, 0.3f, 0.75f, -100, 1.1f, 2, 3, 1000};
    ASSERT_TRUE(context->setTensorAddress("x", values));
    EXPECT_EQ(output<float>("y", 8), want) << static_cast<int>(type);
  }
}

TEST_F(StorageTypes, AreInputsAndOutputsAsTheyLie) {
  ITensor& x = *network->addInput("x", DataType::kINT4, Dims2(3, 3));
  ITensor& f = *network->addInput("f", DataType::kFLOAT, Dims2(1, 3));
  EXPECT_EQ(x.getType(), DataType::kINT4);
  auto* turned = network->addShuffle(x);
  turned->setFirstTranspose(Permutation{{1, 0}});
  mark(turned->getOutput(0), "t");
  mark(network->addCast(f, lathe::kFP8_E5M2)->getOutput(0), "e");
  ASSERT_TRUE(make_context()) << logger.last();
  EXPECT_EQ(engine->getTensorDataType("x"), DataType::kINT4);
  EXPECT_EQ(engine->getTensorDataType("e"), lathe::kFP8_E5M2);
  EXPECT_EQ(context->getMaxOutputSize("t"), 5);
  EXPECT_EQ(context->getMaxOutputSize("e"), 3);
  uint8_t levels[] = {0x21, 0x43, 0x65, 0x87, 0x09};
  float values[] = {1, -2, 100};
  uint8_t codes[3] = {};
  ASSERT_TRUE(context->setTensorAddress("x", levels));
  ASSERT_TRUE(context->setTensorAddress("f", values));
  ASSERT_TRUE(context->setTensorAddress("e", codes));
  EXPECT_EQ(output<uint8_t>("t", 5), (std::vector<uint8_t>{0x41, 0x27, 0x85, 0x63, 0x09}));
  EXPECT_EQ((std::vector<uint8_t>(codes, codes + 3)), (std::vector<uint8_t>{0x3c, 0xc0, 0x56}));
}

TEST_F(StorageTypes, WeightsArePackedAndScaledByBlocks) {
  const uint8_t levels[] = {0x21, 0xf3, 0x78, 0xf9}, scales[] = {0x7f, 0x80}, odd[] = {0x21, 0xf3};
  ITensor& w = *network->addConstant(Dims2(4, 2), Weights{DataType::kINT4, levels, 8})->getOutput(0);
  ITensor& s = *network->addConstant(Dims2(2, 1), Weights{DataType::kE8M0, scales, 2})->getOutput(0);
  ITensor& three = *network->addConstant(Dims{1, {3}}, Weights{DataType::kINT4, odd, 3})->getOutput(0);
  IDequantizeLayer* y = network->addDequantize(w, s, DataType::kFLOAT);
  ASSERT_NE(y, nullptr) << logger.last();
  EXPECT_TRUE(y->setBlockShape(Dims2(2, -1)));
  mark(y->getOutput(0), "y");
  mark(network->addCast(three, DataType::kFLOAT)->getOutput(0), "odd");
  ASSERT_TRUE(make_context()) << logger.last();
  float last[3] = {};
  ASSERT_TRUE(context->setTensorAddress("odd", last));
  EXPECT_EQ(output<float>("y", 8), (V{1, 2, 3, -1, -16, 14, -14, -2}));
  EXPECT_EQ(V(last, last + 3), (V{1, 2, 3}));
}

TEST_F(StorageTypes, BlocksThatAreUnevenAreRefused) {
  const uint8_t levels[] = {0x21, 0xf3, 0x78, 0xf9};
  const float scales[] = {1, 2};
  ITensor& w = *network->addConstant(Dims2(4, 2), Weights{DataType::kINT4, levels, 8})->getOutput(0);
  ITensor& s = *network->addConstant(Dims2(2, 1), Weights{DataType::kFLOAT, scales, 2})->getOutput(0);
  IDequantizeLayer* y = network->addDequantize(w, s, DataType::kFLOAT);
  ASSERT_NE(y, nullptr) << logger.last();
  EXPECT_TRUE(y->setBlockShape(Dims2(3, 2)));
  mark(y->getOutput(0), "y");
  EXPECT_FALSE(make_context());
  EXPECT_NE(logger.last().find("2 blocks of 3 elements do not make up dimension 0"), std::string::npos)
      << logger.last();
}

TEST_F(StorageTypes, NothingComputesWithThem) {
  ITensor& x = *network->addInput("x", DataType::kFP8, Dims2(2, 4));
  const auto has_no_shape = [](ILayer* layer) { return layer->getOutput(0)->getDimensions().nbDims == -1; };
  EXPECT_TRUE(has_no_shape(network->addElementWise(x, x, ElementWiseOperation::kSUM)));
  EXPECT_NE(logger.last().find("does not compute with f8e4m3fn"), std::string::npos) << logger.last();
  EXPECT_TRUE(has_no_shape(network->addActivation(x, ActivationType::kRELU)));
  EXPECT_EQ(logger.text.size(), 2u);
}

TEST_F(StorageTypes, EachHasANumberOfItsOwn) {
  for (int32_t number = 0; number < 80; ++number) {
    const auto type = static_cast<DataType>(number);
    const bool exists = number < 12 || (number >= 64 && number < 75);
    ITensor* x = network->addInput(("x" + std::to_string(number)).c_str(), type, Dims2(1, 2));
    ASSERT_EQ(x != nullptr, exists) << number;
    if (x) {
      EXPECT_EQ(x->getType(), type);
    }
  }
}

}  // namespace
}  // namespace nvinfer1
