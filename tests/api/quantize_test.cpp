// SPDX-License-Identifier: Apache-2.0
// IQuantizer: what it refuses, and that it does what `lathe quantize` tests by its models.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/small_engine.h"
#include "lathe_quantize.h"
#include "source_dir.h"

namespace lathe {
namespace {

using nvinfer1::DataType;
using nvinfer1::Dims;
using nvinfer1::IHostMemory;

const std::string kDigits = source_path("/examples/digits/digits.onnx");

class QuantizerTest : public testing::Test {
 protected:
  std::unique_ptr<IQuantizer> open(const char* path = kDigits.c_str()) {
    return std::unique_ptr<IQuantizer>(createQuantizer(path, 1, logger_));
  }
  static bool add(IQuantizer& quantizer, const std::vector<float>& image, const char* name = "image") {
    const NamedTensor tensor{name, DataType::kFLOAT, Dims{4, {1, 1, 8, static_cast<int64_t>(image.size() / 8)}},
                             image.data()};
    return quantizer.addBatch(&tensor, 1);
  }
  static std::string text(IHostMemory* memory) {
    const std::unique_ptr<IHostMemory> owned(memory);
    return owned ? std::string(static_cast<const char*>(owned->data()), owned->size()) : std::string();
  }
  void expect_error(const char* part) {
    EXPECT_NE(std::string(lastError()).find(part), std::string::npos) << lastError();
  }

  nvinfer1::Errors logger_;
};

TEST_F(QuantizerTest, Quantizes) {
  const auto quantizer = open();
  ASSERT_TRUE(quantizer) << lastError();
  const nlohmann::json before = nlohmann::json::parse(text(quantizer->layersJson(nullptr)));
  EXPECT_EQ(before["batches"], 0);
  EXPECT_EQ(before["layers"].size(), 5u);
  EXPECT_TRUE(before["layers"][0]["scale"].is_null());
  ASSERT_TRUE(add(*quantizer, std::vector<float>(64, 0.5f))) << lastError();
  ASSERT_TRUE(add(*quantizer, std::vector<float>(64, -1))) << lastError();
  const char* options = R"({"method": "minmax", "activations": "u8", "symmetric": false, "exclude": ["gemm1"]})";
  const nlohmann::json layers = nlohmann::json::parse(text(quantizer->layersJson(options)))["layers"];
  EXPECT_EQ(layers[0]["low"], -1);
  EXPECT_EQ(layers[0]["high"], 0.5);
  EXPECT_EQ(layers[0]["zero_point"], 170);
  EXPECT_EQ(layers[4]["quantized"], false);
  EXPECT_EQ(layers[4]["why"], "'gemm1' is excluded");
  EXPECT_NE(text(quantizer->model(options)).find("relu1_out_quantized"), std::string::npos);
}

TEST_F(QuantizerTest, Refuses) {
  EXPECT_FALSE(open(nullptr));
  EXPECT_FALSE(open("nowhere.onnx"));
  expect_error("nowhere.onnx");
  EXPECT_FALSE(createQuantizer(kDigits.c_str(), -1, logger_));
  const auto quantizer = open();
  ASSERT_TRUE(quantizer);
  EXPECT_EQ(text(quantizer->model(nullptr)), "");
  expect_error("no batch was added");
  EXPECT_FALSE(add(*quantizer, std::vector<float>(64), "picture"));
  expect_error("no input 'picture'");
  EXPECT_FALSE(add(*quantizer, std::vector<float>(72)));
  expect_error("has dims [-1, 1, 8, 8], and [1, 1, 8, 9] were given");
  EXPECT_FALSE(add(*quantizer, std::vector<float>(64, std::numeric_limits<float>::infinity())));
  expect_error("holds inf at element 0");
  EXPECT_FALSE(quantizer->addBatch(nullptr, 0));
  expect_error("'image' is not given");
  EXPECT_FALSE(quantizer->addBatch(nullptr, 1));
  for (const char* options :
       {"[]", R"({"bits": 4})", R"({"method": "best"})", R"({"percentile": 0})", R"({"percentile": 101})",
        R"({"activations": "i4"})", R"({"symmetric": 1})", R"({"activations": "f8e4m3fn"})",
        R"({"weights": "f8e4m3fn"})", R"({"exclude": "x"})", R"({"exclude": [1]})", R"({"exclude": ["nothing"]})"})
    EXPECT_EQ(text(quantizer->layersJson(options)), "") << options;
  const std::string floats = R"({"activations": "f8e4m3fn", "weights": "f8e4m3fn")";
  EXPECT_EQ(text(quantizer->layersJson((floats + R"(, "method": "entropy"})").c_str())), "");
  expect_error("it must be minmax or percentile");
  EXPECT_EQ(text(quantizer->layersJson((floats + R"(, "symmetric": false})").c_str())), "");
  expect_error("have no zero point");
  EXPECT_NE(text(quantizer->layersJson((floats + "}").c_str())), "") << lastError();
  logger_.text.clear();
  EXPECT_FALSE(add(*quantizer, std::vector<float>(64), "picture"));
  EXPECT_EQ(logger_.text.size(), 1u);
}

}  // namespace
}  // namespace lathe
