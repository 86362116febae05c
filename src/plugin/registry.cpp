// SPDX-License-Identifier: Apache-2.0
#include "plugin/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/never_destroyed.h"
#include "base/own_object.h"
#include "plugin/types.h"
#include "plugin/v2_plugin.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace lathe::plugin {

namespace nv = nvinfer1;

namespace {

bool is_of(const nv::IPluginCreatorInterface& creator, const char* wanted) {
  const char* kind = creator.getInterfaceInfo().kind;
  return kind && std::strcmp(kind, wanted) == 0;
}

}  // namespace

bool makes_v2_plugins(const nv::IPluginCreatorInterface& creator) { return is_of(creator, kCreatorKindV2); }
bool makes_v3_plugins(const nv::IPluginCreatorInterface& creator) { return is_of(creator, kCreatorKind); }

namespace {

constexpr size_t kMaxName = 1024;

// As the creator tells them; the namespace may be null.
struct Identity {
  const char* name = nullptr;
  const char* version = nullptr;
  const char* space = nullptr;
};

// Null names for creators of an unknown kind.
Identity identify(const nv::IPluginCreatorInterface& creator) {
  if (makes_v2_plugins(creator)) {
    const auto& v1 = static_cast<const nv::IPluginCreator&>(creator);
    return {v1.getPluginName(), v1.getPluginVersion(), v1.getPluginNamespace()};
  }
  if (!makes_v3_plugins(creator)) return {};
  const auto& v3 = static_cast<const nv::IPluginCreatorV3One&>(creator);
  return {v3.getPluginName(), v3.getPluginVersion(), v3.getPluginNamespace()};
}

// The creators that a loaded library offers.
Result<std::vector<nv::IPluginCreatorInterface*>> creators_of(void* handle, const char* path) {
  using GetCreators = nv::IPluginCreatorInterface* const* (*)(int32_t&);
  using GetOldCreators = nv::IPluginCreator* const* (*)(int32_t&);
  std::vector<nv::IPluginCreatorInterface*> found;
  const auto take = [&](auto* get, const char* function) -> Result<> {
    int32_t count = 0;
    const auto* creators = get(count);
    if (count < 0 || (count > 0 && !creators))
      return fail(ErrorCode::invalid_argument, "{} of the plugin library '{}' gives {} creators at {}", function, path,
                  count, static_cast<const void*>(creators));
    found.assign(creators, creators + count);
    if (std::find(found.begin(), found.end(), nullptr) == found.end()) return {};
    return fail(ErrorCode::invalid_argument, "{} of the plugin library '{}' gives a creator that is null", function,
                path);
  };
  Result<> taken;
  if (auto* get = reinterpret_cast<GetCreators>(dlsym(handle, "getCreators")))
    taken = take(get, "getCreators");
  else if (auto* get_old = reinterpret_cast<GetOldCreators>(dlsym(handle, "getPluginCreators")))
    taken = take(get_old, "getPluginCreators");
  else
    taken = fail(ErrorCode::invalid_argument,
                 "'{}' is no plugin library: it has neither getCreators nor getPluginCreators", path);
  if (!taken) return fail(std::move(taken).error());
  return found;
}

struct CloseLibrary {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};

bool fits(const char* text) { return text && strnlen(text, kMaxName) < kMaxName; }

}  // namespace

Registry& global_registry() {
  static NeverDestroyed<Registry> registry(nullptr);  // for static registrars, which may outlive anything
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
    tell(where, result.error());
  } catch (const std::bad_alloc& exception) {
    tell(where, Error{ErrorCode::out_of_memory, exception.what(), {}});
  } catch (...) {  // by a plugin library, of functions that are not noexcept
    tell(where, Error{ErrorCode::invalid_argument, "the plugin library has thrown an exception", {}});
  }
  return fallback;
}

void Registry::tell(const char* where, const Error& error) const {
  if (report_) report_(recorder_.hold().get(), where, error);
}

Result<> Registry::set_parent(nv::IPluginRegistry* parent) {
  // Registries of other libraries end the walk: what they ask is not known.
  const auto own = [](nv::IPluginRegistry* registry) {
    return registry && is_own<Registry>(*registry) ? static_cast<Registry*>(registry) : nullptr;
  };
  for (Registry* above = own(parent); above; above = own(above->parent_.load()))
    if (above == this)
      return fail(ErrorCode::invalid_argument, "the registry would be above itself; give it another parent");
  parent_ = parent;
  return {};
}

nv::IPluginRegistry* Registry::searched_parent() const { return search_parent_ ? parent_.load() : nullptr; }

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
  std::unique_ptr<void, CloseLibrary> closing(handle);  // unless it turns out to be what it should
  using SetLoggerFinder = void (*)(nv::ILoggerFinder*);
  auto* set_finder = reinterpret_cast<SetLoggerFinder>(dlsym(handle, "setLoggerFinder"));
  if (set_finder && finder_) set_finder(finder_);  // before creators are made, which may log
  LATHE_ASSIGN(std::vector<nv::IPluginCreatorInterface*> creators, creators_of(handle, path));
  // Those whose names are taken belong to somebody else, or to an earlier load of the same library. One that tells no
  // name is the library's fault, and is left out with a report.
  std::erase_if(creators, [&](nv::IPluginCreatorInterface* creator) {
    const char* space = identify(*creator).space;
    const Result<bool> added = add(*creator, space ? space : "");
    if (!added)
      tell("IPluginRegistry::loadLibrary", with_context(added.error(), fmt::format("the plugin library '{}'", path)));
    return !added || !*added;
  });
  const std::lock_guard lock(mutex_);
  libraries_.push_back({handle, path, std::move(creators)});
  return closing.release();
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
      changed();
    }
    dlclose(handle);
    return true;
  });
}

void Registry::add_standard(nv::IPluginCreatorInterface& creator) {
  const Identity identity = identify(creator);
  const std::lock_guard lock(mutex_);
  standard_[Key{identity.name, identity.version, identity.space}] = &creator;
  changed();
}

std::string Registry::library_of(const nv::IPluginCreatorInterface& creator) const {
  {
    const std::lock_guard lock(mutex_);
    for (const Library& library : libraries_)
      if (std::ranges::count(library.creators, &creator) > 0) return library.path;
  }
  nv::IPluginRegistry* const parent = searched_parent();
  Registry* const above = parent ? own_object<Registry>(*parent).value_or(nullptr) : nullptr;
  return above ? above->library_of(creator) : std::string();
}

bool Registry::registerCreator(nv::IPluginCreatorInterface& creator, const char* const pluginNamespace) noexcept {
  return reported("IPluginRegistry::registerCreator", false, [&]() -> Result<bool> {
    LATHE_ASSIGN(const bool added, add(creator, pluginNamespace));
    if (added) return true;
    const Identity identity = identify(creator);
    return fail(ErrorCode::invalid_argument, "a creator of '{}', version {}, namespace '{}', is registered already",
                identity.name, identity.version, pluginNamespace);
  });
}

// False if there is one of the same name, version and namespace.
Result<bool> Registry::add(nv::IPluginCreatorInterface& creator, const char* space) {
  const Identity identity = identify(creator);
  if (!fits(identity.name) || !fits(identity.version) || !fits(space))
    return fail(ErrorCode::invalid_argument,
                "the creator's kind is unknown, or name, version or namespace is null or longer than {} characters",
                kMaxName - 1);
  {
    const std::lock_guard lock(mutex_);
    if (!creators_.emplace(Key{identity.name, identity.version, space}, &creator).second) return false;
    changed();
  }
  if (makes_v2_plugins(creator)) static_cast<nv::IPluginCreator&>(creator).setPluginNamespace(space);
  return true;
}

// The lists are made when creators change, not when they are asked for: threads that ask at the same time read one
// list.
void Registry::changed() {
  listed_.clear();
  for (const auto& [key, creator] : creators_) listed_.push_back(creator);
  for (const auto& [key, creator] : standard_)
    if (!creators_.contains(key)) listed_.push_back(creator);
#if NV_TENSORRT_MAJOR < 11
  listed_v1_.clear();
  for (nv::IPluginCreatorInterface* creator : listed_)
    if (makes_v2_plugins(*creator)) listed_v1_.push_back(static_cast<nv::IPluginCreator*>(creator));
#endif
}

nv::IPluginCreatorInterface* const* Registry::getAllCreators(int32_t* const numCreators) const noexcept {
  const std::lock_guard lock(mutex_);
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
    const Key key{pluginName, pluginVersion, pluginNamespace ? pluginNamespace : ""};
    for (const auto* creators : {&creators_, &standard_})
      if (const auto it = creators->find(key); it != creators->end()) return it->second;
  }
  nv::IPluginRegistry* parent = searched_parent();
  return parent ? parent->getCreator(pluginName, pluginVersion, pluginNamespace) : nullptr;
}

bool Registry::deregisterCreator(const nv::IPluginCreatorInterface& creator) noexcept {
  return reported("IPluginRegistry::deregisterCreator", false, [&]() -> Result<bool> {
    const std::lock_guard lock(mutex_);
    if (std::erase_if(creators_, [&](const auto& entry) { return entry.second == &creator; }) == 0)
      return fail(ErrorCode::invalid_argument, "the creator is not registered");
    changed();
    return true;
  });
}

nv::IPluginResource* Registry::acquirePluginResource(const char* key, nv::IPluginResource* resource) noexcept {
  return reported("IPluginRegistry::acquirePluginResource", static_cast<nv::IPluginResource*>(nullptr),
                  [&]() -> Result<nv::IPluginResource*> {
                    if (!fits(key)) return fail(ErrorCode::invalid_argument, "the resource's key is null or too long");
                    std::unique_ptr<nv::IPluginResource> clone;
                    if (nv::IPluginResource* shared = share(key, clone)) return shared;
                    if (resource) clone.reset(resource->clone());  // without the lock: it may call the registry
                    if (!clone)
                      return fail(ErrorCode::invalid_argument,
                                  "there is no resource '{}', and none is given or it cannot be cloned", key);
                    nv::IPluginResource* shared = share(key, clone);
                    if (clone) clone->release();  // another thread's was there first
                    return shared;
                  });
}

// The resource of that key, used once more; takes the clone where there is none yet. Null where there is neither.
nv::IPluginResource* Registry::share(const char* key, std::unique_ptr<nv::IPluginResource>& clone) {
  const std::lock_guard lock(mutex_);
  const auto it = resources_.find(key);
  if (it == resources_.end()) return clone ? (resources_[key] = {clone.release(), 1}).clone : nullptr;
  ++it->second.count;
  return it->second.clone;
}

int32_t Registry::releasePluginResource(const char* key) noexcept {
  return reported("IPluginRegistry::releasePluginResource", -1, [&]() -> Result<int32_t> {
    if (!fits(key)) return fail(ErrorCode::invalid_argument, "the resource's key is null or too long");
    std::unique_ptr<nv::IPluginResource> last;
    {
      const std::lock_guard lock(mutex_);
      const auto it = resources_.find(key);
      if (it == resources_.end()) return fail(ErrorCode::invalid_argument, "there is no resource '{}'", key);
      if (--it->second.count > 0) return 0;
      last.reset(it->second.clone);
      resources_.erase(it);
    }
    return last->release();  // which may call the registry
  });
}

nv::IPluginCreatorInterface* const* Registry::getAllCreatorsRecursive(int32_t* const numCreators) noexcept {
  using List = nv::IPluginCreatorInterface* const*;
  if (numCreators) *numCreators = 0;
  return reported<List>("IPluginRegistry::getAllCreatorsRecursive", nullptr, [&]() -> Result<List> {
    std::vector<nv::IPluginCreatorInterface*> all;
    if (nv::IPluginRegistry* parent = searched_parent()) {
      int32_t count = 0;
      const List inherited = parent->getAllCreatorsRecursive(&count);
      if (inherited && count > 0) all.assign(inherited, inherited + count);
    }
    const std::lock_guard lock(mutex_);
    all.insert(all.end(), listed_.begin(), listed_.end());
    if (all != listed_recursive_) listed_recursive_ = std::move(all);
    if (numCreators) *numCreators = static_cast<int32_t>(listed_recursive_.size());
    return listed_recursive_.data();
  });
}

}  // namespace lathe::plugin
