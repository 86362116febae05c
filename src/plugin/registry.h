// SPDX-License-Identifier: Apache-2.0
// Plugin creators by name, version and namespace. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "NvInferRuntime.h"
#include "base/result.h"
#include "plugin/recorder_slot.h"

namespace lathe::plugin {

class Registry final : public nvinfer1::IPluginRegistry {
 public:
  // Delivers the failure of a call: to the registry's own recorder, if it has one.
  using Report = std::function<void(nvinfer1::IErrorRecorder* recorder, const char* where, const Error& error)>;

  // Libraries that ask for loggers are given `finder`, which outlives all registries; null = none is there.
  explicit Registry(nvinfer1::IPluginRegistry* parent, Report report = nullptr,
                    nvinfer1::ILoggerFinder* finder = nullptr)
      : parent_(parent), report_(std::move(report)), finder_(finder) {}
  ~Registry() noexcept override;

  // Where creators are looked for that are not here; null = nowhere. Not owned. Refuses to be above itself.
  Result<> set_parent(nvinfer1::IPluginRegistry* parent);
  // A creator of the library's own, which lives for ever and gives way to one of the same name, version and namespace.
  void add_standard(nvinfer1::IPluginCreatorInterface& creator);
  // The path by which loadLibrary() of this registry or one above it got the creator; "" where none did.
  std::string library_of(const nvinfer1::IPluginCreatorInterface& creator) const;
  // Before other threads use the registry.
  void set_report(Report report, nvinfer1::ILoggerFinder* finder) {
    report_ = std::move(report);
    finder_ = finder;
  }

  void setErrorRecorder(nvinfer1::IErrorRecorder* const recorder) noexcept override;
  nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override { return recorder_.get(); }
  bool isParentSearchEnabled() const override { return search_parent_; }
  void setParentSearchEnabled(const bool enabled) override { search_parent_ = enabled; }
  PluginLibraryHandle loadLibrary(const char* pluginPath) noexcept override;
  void deregisterLibrary(PluginLibraryHandle handle) noexcept override;
#if NV_TENSORRT_MAJOR < 11
  bool registerCreator(nvinfer1::IPluginCreator& creator, const char* const pluginNamespace) noexcept override;
  nvinfer1::IPluginCreator* const* getPluginCreatorList(int32_t* const numCreators) const noexcept override;
  nvinfer1::IPluginCreator* getPluginCreator(const char* const pluginName, const char* const pluginVersion,
                                             const char* const pluginNamespace) noexcept override;
  bool deregisterCreator(const nvinfer1::IPluginCreator& creator) noexcept override;
#endif
  bool registerCreator(nvinfer1::IPluginCreatorInterface& creator, const char* const pluginNamespace) noexcept override;
  nvinfer1::IPluginCreatorInterface* const* getAllCreators(int32_t* const numCreators) const noexcept override;
  nvinfer1::IPluginCreatorInterface* getCreator(const char* const pluginName, const char* const pluginVersion,
                                                const char* const pluginNamespace) noexcept override;
  bool deregisterCreator(const nvinfer1::IPluginCreatorInterface& creator) noexcept override;
  nvinfer1::IPluginResource* acquirePluginResource(const char* key,
                                                   nvinfer1::IPluginResource* resource) noexcept override;
  int32_t releasePluginResource(const char* key) noexcept override;
  nvinfer1::IPluginCreatorInterface* const* getAllCreatorsRecursive(int32_t* const numCreators) noexcept override;

 private:
  struct Key {
    std::string name, version, space;
    auto operator<=>(const Key&) const = default;
  };
  struct Resource {
    nvinfer1::IPluginResource* clone = nullptr;
    int32_t count = 0;
  };
  struct Library {
    void* handle = nullptr;
    std::string path;
    std::vector<nvinfer1::IPluginCreatorInterface*> creators;
  };

  // Runs `body`, which returns Result<T>; one report and `fallback` when it fails.
  template <class T, class Body>
  T reported(const char* where, T fallback, Body&& body) noexcept;
  Result<PluginLibraryHandle> load(const char* path);
  void tell(const char* where, const Error& error) const;
  nvinfer1::IPluginRegistry* searched_parent() const;
  void changed();  // the creators; locked
  Result<bool> add(nvinfer1::IPluginCreatorInterface& creator, const char* space);
  nvinfer1::IPluginResource* share(const char* key, std::unique_ptr<nvinfer1::IPluginResource>& clone);

  std::atomic<nvinfer1::IPluginRegistry*> parent_;
  Report report_;
  nvinfer1::ILoggerFinder* finder_;
  std::atomic<bool> search_parent_{true};
  RecorderSlot recorder_;
  mutable std::mutex mutex_;
  std::map<Key, nvinfer1::IPluginCreatorInterface*> creators_;
  std::map<Key, nvinfer1::IPluginCreatorInterface*> standard_;
  std::map<std::string, Resource> resources_;
  std::vector<Library> libraries_;
  // What getAllCreators() and getAllCreatorsRecursive() hand out; valid until creators change.
  std::vector<nvinfer1::IPluginCreatorInterface*> listed_;
#if NV_TENSORRT_MAJOR < 11
  std::vector<nvinfer1::IPluginCreator*> listed_v1_;  // what getPluginCreatorList() hands out
#endif
  std::vector<nvinfer1::IPluginCreatorInterface*> listed_recursive_;
};

// Whether it is an IPluginCreator; an IPluginCreatorV3One.
bool makes_v2_plugins(const nvinfer1::IPluginCreatorInterface& creator);
bool makes_v3_plugins(const nvinfer1::IPluginCreatorInterface& creator);

// The registry of the process.
Registry& global_registry();

}  // namespace lathe::plugin
