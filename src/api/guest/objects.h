// SPDX-License-Identifier: Apache-2.0
// What stands in copies of tables (table.h) of the objects that runtimes make (objects.def).
#pragma once

#include <vector>

#include "NvInferRuntime.h"
#include "api/guest/facades.h"
#include "api/guest/guest.h"

namespace lathe::api::guest {

template <class I>
struct TableClass;
#define LATHE_GUEST_OBJECT(I, V) \
  template <>                    \
  struct TableClass<nv::I> {     \
    using Type = nv::apiv::V;    \
  };
#include "api/guest/objects.def"
#undef LATHE_GUEST_OBJECT

// Refusals of the functions of V's table that came after the level of a guest's interface.
template <class V>
std::vector<Patch> missing_in(uint32_t /*level*/) {
  return {};
}
template <>
inline std::vector<Patch> missing_in<nv::apiv::VExecutionContext>(uint32_t level) {
  using V = nv::apiv::VExecutionContext;
  if (level >= 2) return {};
  return {refusal<&V::isStreamCapturable, "IExecutionContext::isStreamCapturable">()};
}
template <>
inline std::vector<Patch> missing_in<nv::apiv::VRuntimeConfig>(uint32_t level) {
  using V = nv::apiv::VRuntimeConfig;
  if (level >= 2) return {};
  return {refusal<&V::createRuntimeCache, "IRuntimeConfig::createRuntimeCache">(),
          refusal<&V::setRuntimeCache, "IRuntimeConfig::setRuntimeCache">(),
          refusal<&V::getRuntimeCache, "IRuntimeConfig::getRuntimeCache">(),
          refusal<&V::setDynamicShapesKernelSpecializationStrategy,
                  "IRuntimeConfig::setDynamicShapesKernelSpecializationStrategy">(),
          refusal<&V::getDynamicShapesKernelSpecializationStrategy,
                  "IRuntimeConfig::getDynamicShapesKernelSpecializationStrategy">(),
          refusal<&V::setCudaGraphStrategy, "IRuntimeConfig::setCudaGraphStrategy">(),
          refusal<&V::getCudaGraphStrategy, "IRuntimeConfig::getCudaGraphStrategy">()};
}

// The functions of V's table that make objects.
template <class V>
std::vector<Patch> creations_of() {
  return {};
}
template <>
inline std::vector<Patch> creations_of<nv::apiv::VRuntime>() {
  using V = nv::apiv::VRuntime;
  return {
    creation<static_cast<nv::ICudaEngine* (V::*)(const void*, std::size_t) noexcept>(&V::deserializeCudaEngine)>(),
#if NV_TENSORRT_MAJOR < 11
        creation<static_cast<nv::ICudaEngine* (V::*)(nv::IStreamReader&) noexcept>(&V::deserializeCudaEngine)>(),
#endif
        creation<&V::deserializeCudaEngineV2>(), creation<&V::loadRuntime>()
  };
}
template <>
inline std::vector<Patch> creations_of<nv::apiv::VCudaEngine>() {
  using V = nv::apiv::VCudaEngine;
  return {
    creation<&V::serialize>(), creation<&V::createExecutionContext>(),
#if NV_TENSORRT_MAJOR < 11
        creation<&V::createExecutionContextWithoutDeviceMemory>(),
#endif
        creation<&V::createEngineInspector>(), creation<&V::createSerializationConfig>(),
        creation<&V::serializeWithConfig>(), creation<&V::createRefitter>(),
        creation<&V::createExecutionContextWithRuntimeConfig>(), creation<&V::createRuntimeConfig>()
  };
}
template <>
inline std::vector<Patch> creations_of<nv::apiv::VExecutionContext>() {
  return {creation<&nv::apiv::VExecutionContext::getRuntimeConfig>()};
}
template <>
inline std::vector<Patch> creations_of<nv::apiv::VRuntimeConfig>() {
  return {creation<&nv::apiv::VRuntimeConfig::createRuntimeCache>()};
}
template <>
inline std::vector<Patch> creations_of<nv::apiv::VRuntimeCache>() {
  return {creation<&nv::apiv::VRuntimeCache::serialize>()};
}

// Both; a refusal replaces what makes objects.
template <class V>
std::vector<Patch> patches_of(uint32_t level) {
  std::vector<Patch> patches = creations_of<V>();
  for (const Patch& refusal : missing_in<V>(level)) patches.push_back(refusal);
  return patches;
}

// What `delete` calls: ends the object, and then the guest, if it was the last one.
inline void delete_object(void* object) noexcept {
  const Table& table = Table::of(object);
  Guest& guest = table.guest();
  table.original<void (*)(void*)>(kDeleteSlot)(object);
  guest.release();
}

// The part of the object whose table its public functions call.
template <class I>
typename TableClass<I>::Type* table_part(I& object) {
  struct Inside : I {
    static auto* of(I& object) { return object.*(&Inside::mImpl); }
  };
  return Inside::of(object);
}

// A class of objects, for code that is the same for all of them.
struct ObjectClass {
  size_t (*slots)();
  std::vector<Patch> (*patches)(uint32_t level);
  void* (*part)(void* object);
  void* (*facade)(Guest& guest, void* object);
};
template <class I>
constexpr ObjectClass kObjectClass = {
    &slots_of<typename TableClass<I>::Type>, &patches_of<typename TableClass<I>::Type>,
    [](void* object) -> void* { return table_part(*static_cast<I*>(object)); },
    [](Guest& guest, void* object) -> void* { return make_facade(guest, *static_cast<I*>(object)); }};

}  // namespace lathe::api::guest
