// SPDX-License-Identifier: Apache-2.0
// What stands in copies of tables (table.h) of the objects that runtimes make (objects.def).
#pragma once

#include <vector>

#include "NvInferRuntime.h"
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

// The functions of V's table that make objects; and refusals of those that came after the level of a guest's interface.
template <class V>
std::vector<Patch> patches_of(uint32_t /*level*/) {
  return {};
}
template <>
inline std::vector<Patch> patches_of<nv::apiv::VRuntime>(uint32_t) {
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
inline std::vector<Patch> patches_of<nv::apiv::VCudaEngine>(uint32_t) {
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
inline std::vector<Patch> patches_of<nv::apiv::VExecutionContext>(uint32_t level) {
  using V = nv::apiv::VExecutionContext;
  std::vector<Patch> patches = {creation<&V::getRuntimeConfig>()};
  if (level < 2) patches.push_back(refusal<&V::isStreamCapturable, "IExecutionContext::isStreamCapturable">());
  return patches;
}
template <>
inline std::vector<Patch> patches_of<nv::apiv::VRuntimeConfig>(uint32_t level) {
  using V = nv::apiv::VRuntimeConfig;
  if (level >= 2) return {creation<&V::createRuntimeCache>()};
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
template <>
inline std::vector<Patch> patches_of<nv::apiv::VRuntimeCache>(uint32_t) {
  return {creation<&nv::apiv::VRuntimeCache::serialize>()};
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

// Gives the object its tables, which `find(part, slots, patches)` makes; nothing is changed where that throws.
template <class I, class Find>
void give_tables(I& object, uint32_t level, Find&& find) {
  using V = typename TableClass<I>::Type;
  const Patch destructor[] = {{kDeleteSlot, reinterpret_cast<void*>(&delete_object)}};
  V* const part = table_part(object);
  const Table& own = find(&object, kDeleteSlot + 1, destructor);
  const Table& inner = find(part, slots_of<V>(), patches_of<V>(level));
  own.give_to(&object);
  inner.give_to(part);
}

}  // namespace lathe::api::guest
