// SPDX-License-Identifier: Apache-2.0
#include "plugin/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace lathe::plugin {
namespace {

namespace nv = nvinfer1;

constexpr size_t kMaxName = 1024;

struct Identity {
  const char* name;
  const char* version;
};

// Null names for creators of an unknown kind.
Identity identify(const nv::IPluginCreatorInterface& creator) {
  const nv::InterfaceInfo info = creator.getInterfaceInfo();
  if (std::strcmp(info.kind, "PLUGIN CREATOR_V1") == 0) {
    const auto& v1 = static_cast<const nv::IPluginCreator&>(creator);
    return {v1.getPluginName(), v1.getPluginVersion()};
  }
  if (std::strcmp(info.kind, "PLUGIN CREATOR_V3ONE") == 0) {
    const auto& v3 = static_cast<const nv::IPluginCreatorV3One&>(creator);
    return {v3.getPluginName(), v3.getPluginVersion()};
  }
  return {nullptr, nullptr};
}

bool fits(const char* text) { return text && strnlen(text, kMaxName) < kMaxName; }

}  // namespace

Registry& global_registry() {
  static Registry* registry = new Registry(nullptr);  // never destroyed: static registrars may outlive anything
  return *registry;
}

Registry::~Registry() noexcept {
  for (auto& [key, resource] : resources_) {
    resource.clone->release();
    delete resource.clone;
  }
}

void Registry::setErrorRecorder(nv::IErrorRecorder* const recorder) noexcept { recorder_.set(recorder); }

template <class T, class Body>
T Registry::reported(const char* where, T fallback, Body&& body) noexcept {
  try {
    Result<T> result = body();
    if (result) return *std::move(result);
    if (report_) report_(recorder_.hold().get(), where, result.error());
  } catch (const std::exception& exception) {
    if (report_) report_(recorder_.hold().get(), where, Error{ErrorCode::out_of_memory, exception.what(), {}});
  }
  return fallback;
}

nv::IPluginRegistry::PluginLibraryHandle Registry::loadLibrary(const char* pluginPath) noexcept {
  return reported<PluginLibraryHandle>("IPluginRegistry::loadLibrary", nullptr, [&] { return load(pluginPath); });
}

Result<nv::IPluginRegistry::PluginLibraryHandle> Registry::load(const char* path) {
  if (!path) return fail(ErrorCode::invalid_argument, "the library's path is null");
  void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return fail(ErrorCode::file_not_found, "the plugin library '{}' cannot be loaded: {}", path, reason ? reason : "");
  }
  using GetCreators = nv::IPluginCreatorInterface* const* (*)(int32_t&);
  using GetOldCreators = nv::IPluginCreator* const* (*)(int32_t&);
  Library library{handle, {}};
  int32_t count = 0;
  if (auto* get = reinterpret_cast<GetCreators>(dlsym(handle, "getCreators"))) {
    nv::IPluginCreatorInterface* const* creators = get(count);
    library.creators.assign(creators, creators + count);
  } else if (auto* get_old = reinterpret_cast<GetOldCreators>(dlsym(handle, "getPluginCreators"))) {
    nv::IPluginCreator* const* creators = get_old(count);
    library.creators.assign(creators, creators + count);
  } else {
    dlclose(handle);
    return fail(ErrorCode::invalid_argument,
                "'{}' is no plugin library: it has neither getCreators nor getPluginCreators", path);
  }
  // Those whose names are taken belong to somebody else, or to an earlier load of the same library.
  std::erase_if(library.creators, [&](nv::IPluginCreatorInterface* creator) { return !add(*creator, ""); });
  const std::lock_guard lock(mutex_);
  libraries_.push_back(std::move(library));
  return handle;
}

void Registry::deregisterLibrary(PluginLibraryHandle handle) noexcept {
  reported("IPluginRegistry::deregisterLibrary", false, [&]() -> Result<bool> {
    {
      const std::lock_guard lock(mutex_);
      const auto it =
          std::find_if(libraries_.begin(), libraries_.end(), [&](const Library& l) { return l.handle == handle; });
      if (it == libraries_.end()) return fail(ErrorCode::invalid_argument, "the handle is of no library loaded here");
      std::vector<nv::IPluginCreatorInterface*> creators = std::move(it->creators);
      libraries_.erase(it);
      // While the library is loaded once more, its creators stay.
      const auto again =
          std::find_if(libraries_.begin(), libraries_.end(), [&](const Library& l) { return l.handle == handle; });
      if (again != libraries_.end()) again->creators.swap(creators);
      std::erase_if(creators_, [&](const auto& entry) {
        return std::find(creators.begin(), creators.end(), entry.second) != creators.end();
      });
    }
    dlclose(handle);
    return true;
  });
}

bool Registry::registerCreator(nv::IPluginCreatorInterface& creator, const char* const pluginNamespace) noexcept {
  return reported("IPluginRegistry::registerCreator", false, [&]() -> Result<bool> {
    LATHE_TRY(add(creator, pluginNamespace));
    return true;
  });
}

Result<> Registry::add(nv::IPluginCreatorInterface& creator, const char* space) {
  const Identity identity = identify(creator);
  if (!fits(identity.name) || !fits(identity.version) || !fits(space))
    return fail(ErrorCode::invalid_argument,
                "the creator's kind is unknown, or name, version or namespace is null or longer than {} characters",
                kMaxName - 1);
  const std::lock_guard lock(mutex_);
  if (creators_.emplace(Key{identity.name, identity.version, space}, &creator).second) return {};
  return fail(ErrorCode::invalid_argument, "a creator of '{}', version {}, namespace '{}', is registered already",
              identity.name, identity.version, space);
}

nv::IPluginCreatorInterface* const* Registry::getAllCreators(int32_t* const numCreators) const noexcept {
  const std::lock_guard lock(mutex_);
  listed_.clear();
  for (const auto& [key, creator] : creators_) listed_.push_back(creator);
  if (numCreators) *numCreators = static_cast<int32_t>(listed_.size());
  return listed_.data();
}

nv::IPluginCreatorInterface* Registry::getCreator(const char* const pluginName, const char* const pluginVersion,
                                                  const char* const pluginNamespace) noexcept {
  const bool valid = reported("IPluginRegistry::getCreator", false, [&]() -> Result<bool> {
    if (fits(pluginName) && fits(pluginVersion)) return true;
    return fail(ErrorCode::invalid_argument, "the plugin's name or version is null or too long");
  });
  if (!valid) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto it = creators_.find(Key{pluginName, pluginVersion, pluginNamespace ? pluginNamespace : ""});
    if (it != creators_.end()) return it->second;
  }
  return parent_ && search_parent_ ? parent_->getCreator(pluginName, pluginVersion, pluginNamespace) : nullptr;
}

bool Registry::deregisterCreator(const nv::IPluginCreatorInterface& creator) noexcept {
  return reported("IPluginRegistry::deregisterCreator", false, [&]() -> Result<bool> {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(creators_, [&](const auto& entry) { return entry.second == &creator; }) > 0) return true;
    return fail(ErrorCode::invalid_argument, "the creator is not registered");
  });
}

nv::IPluginResource* Registry::acquirePluginResource(const char* key, nv::IPluginResource* resource) noexcept {
  return reported("IPluginRegistry::acquirePluginResource", static_cast<nv::IPluginResource*>(nullptr),
                  [&]() -> Result<nv::IPluginResource*> {
                    if (!fits(key)) return fail(ErrorCode::invalid_argument, "the resource's key is null or too long");
                    const std::lock_guard lock(mutex_);
                    Resource& entry = resources_[key];
                    if (!entry.clone && resource) entry.clone = resource->clone();
                    if (!entry.clone) {
                      resources_.erase(key);
                      return fail(ErrorCode::invalid_argument,
                                  "there is no resource '{}', and none is given or it cannot be cloned", key);
                    }
                    ++entry.count;
                    return entry.clone;
                  });
}

int32_t Registry::releasePluginResource(const char* key) noexcept {
  return reported("IPluginRegistry::releasePluginResource", -1, [&]() -> Result<int32_t> {
    if (!fits(key)) return fail(ErrorCode::invalid_argument, "the resource's key is null or too long");
    const std::lock_guard lock(mutex_);
    const auto it = resources_.find(key);
    if (it == resources_.end()) return fail(ErrorCode::invalid_argument, "there is no resource '{}'", key);
    if (--it->second.count > 0) return 0;
    const int32_t status = it->second.clone->release();
    delete it->second.clone;
    resources_.erase(it);
    return status;
  });
}

nv::IPluginCreatorInterface* const* Registry::getAllCreatorsRecursive(int32_t* const numCreators) noexcept {
  std::vector<nv::IPluginCreatorInterface*> all;
  if (parent_ && search_parent_) {
    int32_t count = 0;
    nv::IPluginCreatorInterface* const* inherited = parent_->getAllCreatorsRecursive(&count);
    all.assign(inherited, inherited + count);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [key, creator] : creators_) all.push_back(creator);
  listed_recursive_ = std::move(all);
  if (numCreators) *numCreators = static_cast<int32_t>(listed_recursive_.size());
  return listed_recursive_.data();
}

}  // namespace lathe::plugin
