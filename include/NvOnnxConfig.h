// SPDX-License-Identifier: Apache-2.0
// A plain bag of options that some programs pass around with the ONNX parser; the parser itself does not read it.
#ifndef NV_ONNX_CONFIG_H
#define NV_ONNX_CONFIG_H

#include "NvInfer.h"

namespace nvonnxparser {

// Getters return what was set last. Strings are copied. The caller deletes the object.
class IOnnxConfig {
 public:
  virtual ~IOnnxConfig() noexcept = 0;

  using Verbosity = int32_t;  // an nvinfer1::ILogger::Severity, kWARNING at first

  virtual void setModelDtype(const nvinfer1::DataType) noexcept = 0;
  virtual nvinfer1::DataType getModelDtype() const noexcept = 0;

  virtual const char* getModelFileName() const noexcept = 0;
  virtual void setModelFileName(const char* onnxFilename) noexcept = 0;

  virtual Verbosity getVerbosityLevel() const noexcept = 0;
  virtual void addVerbosity() noexcept = 0;
  virtual void reduceVerbosity() noexcept = 0;
  virtual void setVerbosityLevel(Verbosity) noexcept = 0;

  virtual const char* getTextFileName() const noexcept = 0;
  virtual void setTextFileName(const char* textFileName) noexcept = 0;

  virtual const char* getFullTextFileName() const noexcept = 0;
  virtual void setFullTextFileName(const char* fullTextFileName) noexcept = 0;

  virtual bool getPrintLayerInfo() const noexcept = 0;
  virtual void setPrintLayerInfo(bool) noexcept = 0;
};
inline IOnnxConfig::~IOnnxConfig() noexcept = default;

TENSORRTAPI IOnnxConfig* createONNXConfig();

}  // namespace nvonnxparser

#endif  // NV_ONNX_CONFIG_H
