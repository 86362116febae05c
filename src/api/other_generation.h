// SPDX-License-Identifier: Apache-2.0
// Interfaces that applications implement, as the other generation of the interface lays out their tables: of all that
// runtimes call, these alone differ. What they are for: include/nvinfer/.
#pragma once

#include "NvInferRuntime.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // of plugins of the V2 family

namespace lathe::api {

namespace nv = nvinfer1;

inline constexpr uint32_t kOtherGeneration = NV_TENSORRT_MAJOR >= 11 ? 10 : 11;

class OtherLogger
#if NV_TENSORRT_MAJOR < 11
    : public nv::IVersionedInterface
#endif
{
 public:
#if NV_TENSORRT_MAJOR < 11
  nv::InterfaceInfo getInterfaceInfo() const noexcept override { return {"ILogger", 1, 0}; }
#endif
  virtual void log(nv::ILogger::Severity severity, const char* text) noexcept = 0;
#if NV_TENSORRT_MAJOR >= 11
  virtual ~OtherLogger() = default;
#endif
};

class OtherProfiler
#if NV_TENSORRT_MAJOR < 11
    : public nv::IVersionedInterface
#endif
{
 public:
#if NV_TENSORRT_MAJOR < 11
  nv::InterfaceInfo getInterfaceInfo() const noexcept override { return {"IProfiler", 1, 0}; }
#endif
  virtual void reportLayerTime(const char* layer, float ms) noexcept = 0;
#if NV_TENSORRT_MAJOR >= 11
  virtual ~OtherProfiler() = default;
#endif
};

class OtherRegistry {
 public:
#if NV_TENSORRT_MAJOR >= 11
  virtual bool registerCreator(nv::IPluginCreator& creator, const char* const space) noexcept = 0;
  virtual nv::IPluginCreator* const* getPluginCreatorList(int32_t* const count) const noexcept = 0;
  virtual nv::IPluginCreator* getPluginCreator(const char* const name, const char* const version,
                                               const char* const space) noexcept = 0;
#endif

 protected:
  virtual ~OtherRegistry() noexcept = default;

 public:
  virtual void setErrorRecorder(nv::IErrorRecorder* const recorder) noexcept = 0;
  virtual nv::IErrorRecorder* getErrorRecorder() const noexcept = 0;
#if NV_TENSORRT_MAJOR >= 11
  virtual bool deregisterCreator(const nv::IPluginCreator& creator) noexcept = 0;
#endif
  virtual bool isParentSearchEnabled() const = 0;
  virtual void setParentSearchEnabled(const bool enabled) = 0;
  virtual void* loadLibrary(const char* path) noexcept = 0;
  virtual void deregisterLibrary(void* handle) noexcept = 0;
  virtual bool registerCreator(nv::IPluginCreatorInterface& creator, const char* const space) noexcept = 0;
  virtual nv::IPluginCreatorInterface* const* getAllCreators(int32_t* const count) const noexcept = 0;
  virtual nv::IPluginCreatorInterface* getCreator(const char* const name, const char* const version,
                                                  const char* const space) noexcept = 0;
  virtual bool deregisterCreator(const nv::IPluginCreatorInterface& creator) noexcept = 0;
  virtual nv::IPluginResource* acquirePluginResource(const char* key, nv::IPluginResource* resource) noexcept = 0;
  virtual int32_t releasePluginResource(const char* key) noexcept = 0;
  virtual nv::IPluginCreatorInterface* const* getAllCreatorsRecursive(int32_t* const count) noexcept = 0;
};

}  // namespace lathe::api

#pragma GCC diagnostic pop
