// SPDX-License-Identifier: Apache-2.0
// A record of what a program that reads ONNX files was asked to do. No part of Lathe reads it.
#include "NvOnnxConfig.h"

#include <memory>
#include <new>
#include <string>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nvonnxparser {
namespace {

// Null stands for an empty name. What does not fit into memory leaves the name as it was.
void assign(std::string& name, const char* text) noexcept {
  try {
    name = text ? text : "";
  } catch (const std::bad_alloc&) {
  }
}

class OnnxConfig final : public IOnnxConfig {
 public:
  void setModelDtype(const nvinfer1::DataType type) noexcept override { type_ = type; }
  nvinfer1::DataType getModelDtype() const noexcept override { return type_; }
  const char* getModelFileName() const noexcept override { return model_.c_str(); }
  void setModelFileName(const char* name) noexcept override { assign(model_, name); }
  Verbosity getVerbosityLevel() const noexcept override { return verbosity_; }
  void addVerbosity() noexcept override { ++verbosity_; }
  void reduceVerbosity() noexcept override { --verbosity_; }
  void setVerbosityLevel(Verbosity verbosity) noexcept override { verbosity_ = verbosity; }
  const char* getTextFileName() const noexcept override { return text_.c_str(); }
  void setTextFileName(const char* name) noexcept override { assign(text_, name); }
  const char* getFullTextFileName() const noexcept override { return full_text_.c_str(); }
  void setFullTextFileName(const char* name) noexcept override { assign(full_text_, name); }
  bool getPrintLayerInfo() const noexcept override { return prints_layers_; }
  void setPrintLayerInfo(bool prints_layers) noexcept override { prints_layers_ = prints_layers; }

 private:
  nvinfer1::DataType type_ = nvinfer1::DataType::kFLOAT;
  Verbosity verbosity_ = static_cast<Verbosity>(nvinfer1::ILogger::Severity::kWARNING);
  std::string model_, text_, full_text_;
  bool prints_layers_ = false;
};

}  // namespace

TENSORRTAPI IOnnxConfig* createONNXConfig() { return new (std::nothrow) OnnxConfig; }

}  // namespace nvonnxparser
