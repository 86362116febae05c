// SPDX-License-Identifier: Apache-2.0
// What programs of generation 10 call in engines of a runtime that does not have it: as that library's own engines of
// generation 10 do it (src/api/runtime/*_10_16.cpp), by functions that the runtime has.
#pragma once

#include "NvInferRuntime.h"

#if NV_TENSORRT_MAJOR < 11
#include <algorithm>
#include <limits>

#include "api/guest/guest.h"
#include "api/settings.h"

namespace lathe::api::guest::only_10 {

// The function, of the method's type.
template <class V, class R, class... Args>
void* done_by(R (V::*)(Args...) noexcept, std::type_identity_t<R (*)(V*, Args...) noexcept> function) {
  return reinterpret_cast<void*>(function);
}
template <class V, class R, class... Args>
void* done_by(R (V::*)(Args...) const noexcept, std::type_identity_t<R (*)(const V*, Args...) noexcept> function) {
  return reinterpret_cast<void*>(function);
}

// To the object's recorder, else its logger; false.
template <class V, class Failure>
bool report(const V* self, nv::ILogger* logger, const char* where, Failure failure) noexcept {
  Reporter reporter(logger);
  reporter.set_recorder(self->getErrorRecorder());
  return guarded(reporter, where, [&]() -> Result<> { return failure(); });
}

// IRuntime
inline void* deserializeCudaEngine() {
  using V = nv::apiv::VRuntime;
  return done_by(static_cast<nv::ICudaEngine* (V::*)(nv::IStreamReader&) noexcept>(&V::deserializeCudaEngine),
                 [](V* self, nv::IStreamReader& reader) noexcept {
                   nv::impl::SequentialReader adapter(reader);
                   return self->deserializeCudaEngineV2(adapter);
                 });
}

// ICudaEngine
using Engine = nv::apiv::VCudaEngine;
inline void* createExecutionContextWithoutDeviceMemory() {
  return done_by(&Engine::createExecutionContextWithoutDeviceMemory, [](Engine* self) noexcept {
    return self->createExecutionContext(nv::ExecutionContextAllocationStrategy::kUSER_MANAGED);
  });
}
inline void* getDeviceMemorySize() {
  return done_by(&Engine::getDeviceMemorySize, [](const Engine* self) noexcept {
    return static_cast<size_t>(std::max<int64_t>(0, self->getDeviceMemorySizeV2()));
  });
}
inline void* getDeviceMemorySizeForProfile() {
  return done_by(&Engine::getDeviceMemorySizeForProfile, [](const Engine* self, int32_t profile) noexcept {
    return static_cast<size_t>(std::max<int64_t>(0, self->getDeviceMemorySizeForProfileV2(profile)));
  });
}
inline void* getProfileTensorValues() {
  return done_by(&Engine::getProfileTensorValues,
                 [](const Engine* self, const char*, int32_t, nv::OptProfileSelector) noexcept -> const int32_t* {
                   report(self, Table::of(self).guest().reporter().logger(), "ICudaEngine::getProfileTensorValues", [] {
                     return fail(ErrorCode::call_missing,
                                 "the engine's runtime is one of interface 11, and has 64-bit values alone; "
                                 "call getProfileTensorValuesV2()");
                   });
                   return nullptr;
                 });
}
inline void* hasImplicitBatchDimension() {
  return done_by(&Engine::hasImplicitBatchDimension, [](const Engine*) noexcept { return false; });
}
inline void* setWeightStreamingBudget() {
  return done_by(&Engine::setWeightStreamingBudget, [](Engine* self, int64_t budget) noexcept {
    if (budget == -1) budget = self->getWeightStreamingAutomaticBudget();
    return self->setWeightStreamingBudgetV2(budget == 0 ? self->getStreamableWeightsSize() : budget);
  });
}
inline void* getWeightStreamingBudget() {
  return done_by(&Engine::getWeightStreamingBudget, [](const Engine* self) noexcept {
    const int64_t budget = self->getWeightStreamingBudgetV2();
    return budget < self->getStreamableWeightsSize() ? budget : 0;
  });
}
inline void* getMinimumWeightStreamingBudget() {
  return done_by(&Engine::getMinimumWeightStreamingBudget,
                 [](const Engine* self) noexcept { return std::min<int64_t>(self->getStreamableWeightsSize(), 1); });
}

// IExecutionContext
inline void* allInputShapesSpecified() {
  using V = nv::apiv::VExecutionContext;
  return done_by(&V::allInputShapesSpecified,
                 [](const V* self) noexcept { return self->allInputDimensionsSpecified(); });
}

// IRefitter: no library of ours has ranges.
using Refitter = nv::apiv::VRefitter;
inline constexpr float kNoRange = std::numeric_limits<float>::quiet_NaN();
inline void* setDynamicRange() {
  return done_by(&Refitter::setDynamicRange, [](Refitter* self, const char*, float, float) noexcept {
    constexpr SettingId kId = SettingId::IRefitter_setDynamicRange;
    return report(self, self->getLogger(), setting_of(kId).name, [] { return fail(refusal_of(kId)); });
  });
}
inline void* getDynamicRangeMin() {
  return done_by(&Refitter::getDynamicRangeMin, [](const Refitter*, const char*) noexcept { return kNoRange; });
}
inline void* getDynamicRangeMax() {
  return done_by(&Refitter::getDynamicRangeMax, [](const Refitter*, const char*) noexcept { return kNoRange; });
}
inline void* getTensorsWithDynamicRange() {
  return done_by(&Refitter::getTensorsWithDynamicRange,
                 [](const Refitter*, int32_t, const char**) noexcept -> int32_t { return 0; });
}

}  // namespace lathe::api::guest::only_10
#endif
