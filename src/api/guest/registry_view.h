// SPDX-License-Identifier: Apache-2.0
// A plugin registry of one generation of the interface as the other one's class.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "api/other_generation.h"
#include "api/report.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // of plugins of the V2 family

namespace lathe::api::guest {

// Of creators of the V2 family, whose plugins' tables differ between generations: false, and a report.
bool may_register(const Reporter& reporter, const nv::IPluginCreatorInterface& creator) noexcept;
// Null for one of these, with a warning.
nv::IPluginCreatorInterface* shown(const Reporter& reporter, nv::IPluginCreatorInterface* creator) noexcept;

// A list without these, which stays valid until creators change. Thread-safe.
class ShownCreators {
 public:
  nv::IPluginCreatorInterface* const* take(const Reporter& reporter, nv::IPluginCreatorInterface* const* creators,
                                           int32_t all, int32_t* count) noexcept;

 private:
  std::mutex mutex_;
  std::vector<nv::IPluginCreatorInterface*> shown_;
};

// Shows a Target, without creators of the V2 family.
template <class Base, class Target>
class RegistryView : public Base {
 public:
  explicit RegistryView(const Reporter& reporter) : reporter_(reporter) {}
  void show(Target& registry) noexcept { target_ = &registry; }

  void setErrorRecorder(nv::IErrorRecorder* const recorder) noexcept override { target().setErrorRecorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return target().getErrorRecorder(); }
  bool isParentSearchEnabled() const override { return target().isParentSearchEnabled(); }
  void setParentSearchEnabled(const bool enabled) override { target().setParentSearchEnabled(enabled); }
  void* loadLibrary(const char* path) noexcept override { return target().loadLibrary(path); }
  void deregisterLibrary(void* handle) noexcept override { target().deregisterLibrary(handle); }
  bool registerCreator(nv::IPluginCreatorInterface& creator, const char* const space) noexcept override {
    return may_register(reporter_, creator) && target().registerCreator(creator, space);
  }
  nv::IPluginCreatorInterface* const* getAllCreators(int32_t* const count) const noexcept override {
    int32_t all = 0;
    nv::IPluginCreatorInterface* const* const creators = target().getAllCreators(&all);
    return listed_.take(reporter_, creators, all, count);
  }
  nv::IPluginCreatorInterface* getCreator(const char* const name, const char* const version,
                                          const char* const space) noexcept override {
    return shown(reporter_, target().getCreator(name, version, space));
  }
  bool deregisterCreator(const nv::IPluginCreatorInterface& creator) noexcept override {
    return target().deregisterCreator(creator);
  }
  nv::IPluginResource* acquirePluginResource(const char* key, nv::IPluginResource* resource) noexcept override {
    return target().acquirePluginResource(key, resource);
  }
  int32_t releasePluginResource(const char* key) noexcept override { return target().releasePluginResource(key); }
  nv::IPluginCreatorInterface* const* getAllCreatorsRecursive(int32_t* const count) noexcept override {
    int32_t all = 0;
    nv::IPluginCreatorInterface* const* const creators = target().getAllCreatorsRecursive(&all);
    return listed_recursive_.take(reporter_, creators, all, count);
  }

 private:
  Target& target() const noexcept { return *target_; }

  const Reporter& reporter_;
  std::atomic<Target*> target_{nullptr};
  mutable ShownCreators listed_;
  ShownCreators listed_recursive_;
};

// With what generation 10 has besides: creators of the V2 family by their own type.
template <class Base, class Target>
class RegistryView10 final : public RegistryView<Base, Target> {
 public:
  using View = RegistryView<Base, Target>;
  using View::deregisterCreator;
  using View::registerCreator;
  using View::View;
  bool registerCreator(nv::IPluginCreator& creator, const char* const space) noexcept override {
    return registerCreator(static_cast<nv::IPluginCreatorInterface&>(creator), space);
  }
  nv::IPluginCreator* const* getPluginCreatorList(int32_t* const count) const noexcept override {
    if (count) *count = 0;
    return nullptr;
  }
  nv::IPluginCreator* getPluginCreator(const char* const name, const char* const version,
                                       const char* const space) noexcept override {
    this->getCreator(name, version, space);  // which warns where there is one
    return nullptr;
  }
  bool deregisterCreator(const nv::IPluginCreator& creator) noexcept override {
    return deregisterCreator(static_cast<const nv::IPluginCreatorInterface&>(creator));
  }
};

// The application's, as a guest takes it; a guest's, as the application does.
#if NV_TENSORRT_MAJOR >= 11
using ViewForGuest = RegistryView10<OtherRegistry, nv::IPluginRegistry>;
using ViewOfGuest = RegistryView<nv::IPluginRegistry, OtherRegistry>;
#else
using ViewForGuest = RegistryView<OtherRegistry, nv::IPluginRegistry>;
using ViewOfGuest = RegistryView10<nv::IPluginRegistry, OtherRegistry>;
#endif

}  // namespace lathe::api::guest

#pragma GCC diagnostic pop
