// SPDX-License-Identifier: Apache-2.0
#include "NvOnnxConfig.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace nvonnxparser {
namespace {

TEST(OnnxConfig, KeepsWhatIsSet) {
  const std::unique_ptr<IOnnxConfig> config(createONNXConfig());
  EXPECT_EQ(config->getModelDtype(), nvinfer1::DataType::kFLOAT);
  EXPECT_EQ(config->getVerbosityLevel(), static_cast<int>(nvinfer1::ILogger::Severity::kWARNING));
  EXPECT_FALSE(config->getPrintLayerInfo());
  for (const char* name : {config->getModelFileName(), config->getTextFileName(), config->getFullTextFileName()})
    EXPECT_STREQ(name, "");

  config->setModelDtype(nvinfer1::DataType::kHALF);
  config->addVerbosity();
  config->addVerbosity();
  config->reduceVerbosity();
  {
    const std::string model = "model.onnx", text = "model.txt", full = "full.txt";
    config->setModelFileName(model.c_str());
    config->setTextFileName(text.c_str());
    config->setFullTextFileName(full.c_str());
  }
  config->setPrintLayerInfo(true);
  EXPECT_EQ(config->getModelDtype(), nvinfer1::DataType::kHALF);
  EXPECT_EQ(config->getVerbosityLevel(), static_cast<int>(nvinfer1::ILogger::Severity::kINFO));
  EXPECT_STREQ(config->getModelFileName(), "model.onnx");
  EXPECT_STREQ(config->getTextFileName(), "model.txt");
  EXPECT_STREQ(config->getFullTextFileName(), "full.txt");
  EXPECT_TRUE(config->getPrintLayerInfo());
  config->setVerbosityLevel(4);
  config->setModelFileName(nullptr);
  EXPECT_EQ(config->getVerbosityLevel(), 4);
  EXPECT_STREQ(config->getModelFileName(), "");
}

}  // namespace
}  // namespace nvonnxparser
