// SPDX-License-Identifier: Apache-2.0
#include "api/guest/other_side.h"

#include "plugin/registry.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // of plugins of the V2 family

namespace lathe::api::guest {

namespace {

Result<> check(const nv::IPluginCreatorInterface& creator) {
  if (!plugin::makes_v2_plugins(creator)) return {};
  const auto& named = static_cast<const nv::IPluginCreator&>(creator);
  return fail(ErrorCode::invalid_argument,
              "the plugin creator '{}', version {}, makes plugins of the V2 family, whose classes interfaces 10 and 11 "
              "lay out differently: a runtime of the other one does not get it. Make the plugin an IPluginV3",
              named.getPluginName(), named.getPluginVersion());
}

}  // namespace

bool may_register(const Reporter& reporter, const nv::IPluginCreatorInterface& creator) noexcept {
  return guarded(reporter, "IPluginRegistry::registerCreator", [&] { return check(creator); });
}

nv::IPluginCreatorInterface* shown(const Reporter& reporter, nv::IPluginCreatorInterface* creator) noexcept {
  if (!creator || !plugin::makes_v2_plugins(*creator)) return creator;
  guarded(reporter, "IPluginRegistry::getCreator", [&]() -> Result<> {
    reporter.log().write(Severity::warning, check(*creator).error().message);
    return {};
  });
  return nullptr;
}

nv::IPluginCreatorInterface* const* ShownCreators::take(const Reporter& reporter,
                                                        nv::IPluginCreatorInterface* const* creators, int32_t all,
                                                        int32_t* count) noexcept {
  const std::lock_guard lock(mutex_);
  guarded(reporter, "IPluginRegistry::getAllCreators", [&]() -> Result<> {
    std::vector<nv::IPluginCreatorInterface*> now;
    for (int32_t i = 0; i < all; ++i)
      if (!plugin::makes_v2_plugins(*creators[i])) now.push_back(creators[i]);
    if (now != shown_) shown_ = std::move(now);
    return {};
  });
  if (count) *count = static_cast<int32_t>(shown_.size());
  return shown_.data();
}

nv::ILogger* OtherSide::logger(nv::ILogger& logger) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    for (const auto& known : loggers_)
      if (&known->application() == &logger) return known->as_guest_sees();
    return loggers_.emplace_back(std::make_unique<LoggerForGuest>(logger))->as_guest_sees();
  } catch (...) {
    return first_.as_guest_sees();
  }
}

nv::IPluginRegistry* OtherSide::parent(nv::IPluginRegistry* registry) noexcept {
  if (!registry) return nullptr;
  parent_.show(*registry);
  return reinterpret_cast<nv::IPluginRegistry*>(static_cast<OtherRegistry*>(&parent_));
}

void OtherSide::add(const void* object, void* facade) {
  const std::lock_guard lock(mutex_);
  facades_.push_back({object, facade});
}

void OtherSide::remove(const void* object) noexcept {
  const std::lock_guard lock(mutex_);
  if (Pair* const pair = find(object)) {
    *pair = facades_.back();
    facades_.pop_back();
  }
}

void* OtherSide::facade_of(const void* object) noexcept {
  const std::lock_guard lock(mutex_);
  const Pair* const pair = find(object);
  return pair ? pair->facade : nullptr;
}

OtherSide::Pair* OtherSide::find(const void* object) noexcept {
  for (Pair& pair : facades_)
    if (pair.object == object) return &pair;
  return nullptr;
}

}  // namespace lathe::api::guest
