// SPDX-License-Identifier: Apache-2.0
// Budgets of weights that are copied to the device while the engine runs.
#include <algorithm>

#include "api/deprecation.h"
#include "api/runtime/cuda_engine.h"

namespace lathe::api {

int64_t CudaEngine::getStreamableWeightsSize() const noexcept {
  const StreamedWeights* const streamed = core_->engine->streamed();
  return streamed ? static_cast<int64_t>(streamed->streamable_bytes()) : 0;
}

bool CudaEngine::setWeightStreamingBudgetV2(int64_t gpuMemoryBudget) noexcept {
  constexpr auto kId = SettingId::ICudaEngine_setWeightStreamingBudgetV2;
  return guarded(*core_->reporter, setting_of(kId).name, [&]() -> Result<> {
    StreamedWeights* const streamed = core_->engine->streamed();
    if (gpuMemoryBudget < 0)
      return fail(
          ErrorCode::invalid_argument,
          "a budget of {} bytes: it is at least 0; getStreamableWeightsSize(), {}, has all weights on the device",
          gpuMemoryBudget, getStreamableWeightsSize());
    if (!streamed && gpuMemoryBudget > 0)
      return fail(ErrorCode::invalid_state,
                  "no weights of this engine can be streamed: build it for a GPU with BuilderFlag::kWEIGHT_STREAMING, "
                  "and without flags of refitting");
    return streamed ? streamed->set_budget(static_cast<size_t>(gpuMemoryBudget)) : Result<>();
  });
}

int64_t CudaEngine::getWeightStreamingBudgetV2() const noexcept {
  const StreamedWeights* const streamed = core_->engine->streamed();
  return streamed ? static_cast<int64_t>(streamed->budget()) : 0;
}

int64_t CudaEngine::getWeightStreamingScratchMemorySize() const noexcept {
  const StreamedWeights* const streamed = core_->engine->streamed();
  return streamed ? static_cast<int64_t>(streamed->scratch_bytes()) : 0;
}

// What is free but for a twentieth of the device, one context, and buffers as large as they are now.
int64_t CudaEngine::getWeightStreamingAutomaticBudget() const noexcept {
  const StreamedWeights* const streamed = core_->engine->streamed();
  const std::optional<MemoryUse> use = streamed ? core_->engine->device().memory_use() : std::nullopt;
  if (!use) return getStreamableWeightsSize();
  const auto free = static_cast<int64_t>(use->total - use->used + streamed->placed_bytes());
  const int64_t kept = static_cast<int64_t>(use->total / 20) + std::max<int64_t>(getDeviceMemorySizeV2(), 0) +
                       getWeightStreamingScratchMemorySize();
  return std::clamp<int64_t>(free - kept, 0, getStreamableWeightsSize());
}

#if NV_TENSORRT_MAJOR < 11
// Here 0 has all weights on the device, so that a byte is the least that there is.
bool CudaEngine::setWeightStreamingBudget(int64_t gpuMemoryBudget) noexcept {
  static constinit Deprecation deprecation("ICudaEngine::setWeightStreamingBudget", "setWeightStreamingBudgetV2()");
  deprecation.tell(*core_->reporter);
  if (gpuMemoryBudget == -1) return setWeightStreamingBudgetV2(getWeightStreamingAutomaticBudget());
  return setWeightStreamingBudgetV2(gpuMemoryBudget == 0 ? getStreamableWeightsSize() : gpuMemoryBudget);
}

int64_t CudaEngine::getWeightStreamingBudget() const noexcept {
  static constinit Deprecation deprecation("ICudaEngine::getWeightStreamingBudget", "getWeightStreamingBudgetV2()");
  deprecation.tell(*core_->reporter);
  const int64_t budget = getWeightStreamingBudgetV2();
  return budget < getStreamableWeightsSize() ? budget : 0;
}

int64_t CudaEngine::getMinimumWeightStreamingBudget() const noexcept {
  static constinit Deprecation deprecation("ICudaEngine::getMinimumWeightStreamingBudget",
                                           "setWeightStreamingBudgetV2() with 0");
  deprecation.tell(*core_->reporter);
  return std::min<int64_t>(getStreamableWeightsSize(), 1);
}
#endif

}  // namespace lathe::api
