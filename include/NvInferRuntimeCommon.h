// SPDX-License-Identifier: Apache-2.0
// The plugin registry.
#ifndef NV_INFER_RUNTIME_COMMON_H
#define NV_INFER_RUNTIME_COMMON_H

#include "NvInferRuntimeBase.h"
#include "NvInferRuntimePlugin.h"
#include "nvinfer/logger.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Maps name, version and namespace to plugin creators. One registry is global (getPluginRegistry()); builders and
// runtimes have local ones that also search the global one. Owned by the library; thread-safe.
class IPluginRegistry {
 public:
  using PluginLibraryHandle = void*;

  IPluginRegistry() = default;
  IPluginRegistry(const IPluginRegistry&) = delete;
  IPluginRegistry(IPluginRegistry&&) = delete;
  IPluginRegistry& operator=(const IPluginRegistry&) & = delete;
  IPluginRegistry& operator=(IPluginRegistry&&) & = delete;

#if NV_TENSORRT_MAJOR < 11
  // Creators of the V2 family by their own type, as the functions below; they replace these.
  virtual bool registerCreator(IPluginCreator& creator, const AsciiChar* const pluginNamespace) noexcept = 0;
  virtual IPluginCreator* const* getPluginCreatorList(int32_t* const numCreators) const noexcept = 0;
  virtual IPluginCreator* getPluginCreator(const AsciiChar* const pluginName, const AsciiChar* const pluginVersion,
                                           const AsciiChar* const pluginNamespace = "") noexcept = 0;
#endif

 protected:
  virtual ~IPluginRegistry() noexcept = 0;

 public:
  // nullptr detaches. The recorder's count is incremented while it is attached.
  virtual void setErrorRecorder(IErrorRecorder* const recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

#if NV_TENSORRT_MAJOR < 11
  virtual bool deregisterCreator(const IPluginCreator& creator) noexcept = 0;
#endif
  // Whether a local registry also searches its parent; on by default.
  virtual bool isParentSearchEnabled() const = 0;
  virtual void setParentSearchEnabled(const bool enabled) = 0;

  // Opens a shared library of plugins and registers its creators. nullptr on failure.
  virtual PluginLibraryHandle loadLibrary(const AsciiChar* pluginPath) noexcept = 0;
  virtual void deregisterLibrary(PluginLibraryHandle handle) noexcept = 0;

  // False when a creator of the same name, version and namespace exists. The creator is not owned.
  virtual bool registerCreator(IPluginCreatorInterface& creator, const AsciiChar* const pluginNamespace) noexcept = 0;

  // The array belongs to the registry and is valid until creators change.
  virtual IPluginCreatorInterface* const* getAllCreators(int32_t* const numCreators) const noexcept = 0;

  // nullptr when there is none.
  virtual IPluginCreatorInterface* getCreator(const AsciiChar* const pluginName, const AsciiChar* const pluginVersion,
                                              const AsciiChar* const pluginNamespace = "") noexcept = 0;

  virtual bool deregisterCreator(const IPluginCreatorInterface& creator) noexcept = 0;

  // The resource registered under `key`, after storing a clone of `resource` if there was none. Counted: balance with
  // releasePluginResource(), which returns 0 on success.
  virtual IPluginResource* acquirePluginResource(const AsciiChar* key, IPluginResource* resource) noexcept = 0;
  virtual int32_t releasePluginResource(const AsciiChar* key) noexcept = 0;

  // As getAllCreators(), with those of the parents.
  virtual IPluginCreatorInterface* const* getAllCreatorsRecursive(int32_t* const numCreators) noexcept = 0;
};

inline IPluginRegistry::~IPluginRegistry() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NV_INFER_RUNTIME_COMMON_H
