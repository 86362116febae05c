// SPDX-License-Identifier: Apache-2.0
// The logger that an application implements. Include NvInferRuntime.h instead.
#ifndef NVINFER_LOGGER_H
#define NVINFER_LOGGER_H

#include "NvInferRuntimeBase.h"

namespace nvinfer1 {

#if NV_TENSORRT_MAJOR >= 11
namespace v_1_0 {
#endif

// Receives log lines of a builder, runtime or refitter and of everything made by it. Called from any thread, without
// locks held; must outlive all objects that use it.
#if NV_TENSORRT_MAJOR >= 11
class ILogger : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"ILogger", 1, 0}; }
#else
class ILogger {
 public:
#endif

  enum class Severity : int32_t {
    kINTERNAL_ERROR = 0,  // a fault of the library
    kERROR = 1,           // a fault of the caller or the machine
    kWARNING = 2,
    kINFO = 3,
    kVERBOSE = 4,
  };

  // `msg` is valid during the call only.
  virtual void log(Severity severity, const AsciiChar* msg) noexcept = 0;

  ILogger() = default;
  virtual ~ILogger() = default;

 protected:
  ILogger(const ILogger&) = default;
  ILogger(ILogger&&) = default;
  ILogger& operator=(const ILogger&) & = default;
  ILogger& operator=(ILogger&&) & = default;
};

#if NV_TENSORRT_MAJOR >= 11
}  // namespace v_1_0

using ILogger = v_1_0::ILogger;
#endif

}  // namespace nvinfer1

#endif  // NVINFER_LOGGER_H
