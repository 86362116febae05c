// SPDX-License-Identifier: Apache-2.0
// Plugin fields and the root interfaces of V3 plugins.
#ifndef NV_INFER_PLUGIN_BASE_H
#define NV_INFER_PLUGIN_BASE_H

#include "NvInferRuntimeBase.h"

namespace nvinfer1 {

enum class PluginFieldType : int32_t {
  kFLOAT16 = 0,
  kFLOAT32 = 1,
  kFLOAT64 = 2,
  kINT8 = 3,
  kINT16 = 4,
  kINT32 = 5,
  kCHAR = 6,
  kDIMS = 7,
  kUNKNOWN = 8,
  kBF16 = 9,
  kINT64 = 10,
  kFP8 = 11,
  kINT4 = 12,
  kFP4 = 13,
};

// One named attribute of a plugin: `length` elements of `type` at `data`. Not owned.
class PluginField {
 public:
  const AsciiChar* name;
  const void* data;
  PluginFieldType type;
  int32_t length;

  PluginField(const AsciiChar* const name_ = nullptr, const void* const data_ = nullptr,
              const PluginFieldType type_ = PluginFieldType::kUNKNOWN, const int32_t length_ = 0) noexcept
      : name(name_), data(data_), type(type_), length(length_) {}
};

struct PluginFieldCollection {
  int32_t nbFields;
  const PluginField* fields;
};

// Why a plugin is being created.
enum class TensorRTPhase : int32_t {
  kBUILD = 0,
  kRUNTIME = 1,
};

enum class PluginCapabilityType : int32_t {
  kCORE = 0,
  kBUILD = 1,
  kRUNTIME = 2,
};

namespace v_1_0 {

class IPluginCapability : public IVersionedInterface {};

// Something that plugins share by key through IPluginRegistry::acquirePluginResource.
class IPluginResource : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"IPluginResource", 1, 0}; }

  // Frees what the resource holds; called on registered clones when their count reaches zero. 0 = success.
  virtual int32_t release() noexcept = 0;

  // A copy for the registry to keep and own; nullptr on failure.
  virtual IPluginResource* clone() noexcept = 0;

  ~IPluginResource() noexcept override = default;

  IPluginResource() = default;
  IPluginResource(const IPluginResource&) = default;
  IPluginResource(IPluginResource&&) = default;
  IPluginResource& operator=(const IPluginResource&) & = default;
  IPluginResource& operator=(IPluginResource&&) & = default;
};

// Root of all plugin creators; getInterfaceInfo().kind tells which one it is.
class IPluginCreatorInterface : public IVersionedInterface {
 public:
  ~IPluginCreatorInterface() noexcept override = default;

 protected:
  IPluginCreatorInterface() = default;
  IPluginCreatorInterface(const IPluginCreatorInterface&) = default;
  IPluginCreatorInterface(IPluginCreatorInterface&&) = default;
  IPluginCreatorInterface& operator=(const IPluginCreatorInterface&) & = default;
  IPluginCreatorInterface& operator=(IPluginCreatorInterface&&) & = default;
};

// A plugin of the current generation, assembled from capabilities.
class IPluginV3 : public IVersionedInterface {
 public:
  InterfaceInfo getInterfaceInfo() const noexcept override { return InterfaceInfo{"PLUGIN", 1, 0}; }

  // The capability object, owned by the plugin; nullptr when the plugin lacks it.
  virtual IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept = 0;

  // A copy that the caller owns.
  virtual IPluginV3* clone() noexcept = 0;
};

}  // namespace v_1_0

using IPluginResource = v_1_0::IPluginResource;
using IPluginCreatorInterface = v_1_0::IPluginCreatorInterface;
using IPluginV3 = v_1_0::IPluginV3;
using IPluginCapability = v_1_0::IPluginCapability;

}  // namespace nvinfer1

#endif  // NV_INFER_PLUGIN_BASE_H
