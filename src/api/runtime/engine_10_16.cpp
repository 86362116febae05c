// SPDX-License-Identifier: Apache-2.0
// What engines, contexts and refitters of generation 10 have besides.
#include "api/deprecation.h"
#include "api/runtime/cuda_engine.h"
#include "api/runtime/execution_context.h"
#include "api/runtime/refitter.h"

namespace lathe::api {

bool Refitter::setDynamicRange(const char*, float, float) noexcept {
  return refuse(SettingId::IRefitter_setDynamicRange);
}

nv::IExecutionContext* CudaEngine::createExecutionContextWithoutDeviceMemory() noexcept {
  static constinit Deprecation deprecation("ICudaEngine::createExecutionContextWithoutDeviceMemory",
                                           "createExecutionContext() with kUSER_MANAGED");
  deprecation.tell(*core_->reporter);
  return createExecutionContext(nv::ExecutionContextAllocationStrategy::kUSER_MANAGED);
}

size_t CudaEngine::getDeviceMemorySize() const noexcept {
  static constinit Deprecation deprecation("ICudaEngine::getDeviceMemorySize", "getDeviceMemorySizeV2()");
  deprecation.tell(*core_->reporter);
  return static_cast<size_t>(std::max<int64_t>(0, getDeviceMemorySizeV2()));
}

size_t CudaEngine::getDeviceMemorySizeForProfile(int32_t profileIndex) const noexcept {
  static constinit Deprecation deprecation("ICudaEngine::getDeviceMemorySizeForProfile",
                                           "getDeviceMemorySizeForProfileV2()");
  deprecation.tell(*core_->reporter);
  return static_cast<size_t>(std::max<int64_t>(0, getDeviceMemorySizeForProfileV2(profileIndex)));
}

const int32_t* CudaEngine::getProfileTensorValues(const char* tensorName, int32_t profileIndex,
                                                  nv::OptProfileSelector select) const noexcept {
  static constinit Deprecation deprecation("ICudaEngine::getProfileTensorValues", "getProfileTensorValuesV2()");
  deprecation.tell(*core_->reporter);
  if (!getProfileTensorValuesV2(tensorName, profileIndex, select)) return nullptr;
  return guarded(
      *core_->reporter, "ICudaEngine::getProfileTensorValues", static_cast<const int32_t*>(nullptr),
      [&]() -> Result<const int32_t*> {
        LATHE_ASSIGN(const size_t input, index_of(tensorName));
        const auto& values = profile_values_[static_cast<size_t>(profileIndex)][input][static_cast<size_t>(select)];
        const std::lock_guard lock(narrow_mutex_);
        std::vector<int32_t>& narrow = narrow_values_[values.data()];
        if (narrow.size() == values.size()) return narrow.data();
        for (const int64_t value : values) {
          if (value != static_cast<int32_t>(value))
            return fail(ErrorCode::invalid_argument,
                        "input '{}': {} does not fit into 32 bits; call getProfileTensorValuesV2()", tensorName, value);
          narrow.push_back(static_cast<int32_t>(value));
        }
        return narrow.data();
      });
}

bool ExecutionContext::allInputShapesSpecified() const noexcept {
  static constinit Deprecation deprecation("IExecutionContext::allInputShapesSpecified", "inferShapes()");
  deprecation.tell(reporter_);
  return allInputDimensionsSpecified();
}

}  // namespace lathe::api
