// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/refitter.h"

namespace lathe::api {

bool Refitter::refuse(SettingId id) noexcept {
  return guarded(reporter_, setting_of(id).name, [&]() -> Result<> { return fail(refusal_of(id)); });
}

bool Refitter::setWeights(const char*, nv::WeightsRole, const nv::Weights) noexcept {
  return refuse(SettingId::IRefitter_setWeights);
}

bool Refitter::setNamedWeights(const char*, nv::Weights) noexcept {
  return refuse(SettingId::IRefitter_setNamedWeights);
}

bool Refitter::setNamedWeightsWithLocation(const char*, nv::Weights, nv::TensorLocation) noexcept {
  return refuse(SettingId::IRefitter_setNamedWeightsWithLocation);
}

bool Refitter::unsetNamedWeights(const char*) noexcept { return refuse(SettingId::IRefitter_unsetNamedWeights); }

bool Refitter::refuse_to_refit(const char* where) noexcept {
  return guarded(reporter_, where, []() -> Result<> {
    return fail(ErrorCode::invalid_state,
                "the engine has no weights that can be replaced: build the plan anew with the new ones");
  });
}

bool Refitter::refitCudaEngine() noexcept { return refuse_to_refit("IRefitter::refitCudaEngine"); }

bool Refitter::refitCudaEngineAsync(cudaStream_t) noexcept {
  return refuse_to_refit("IRefitter::refitCudaEngineAsync");
}

bool Refitter::setMaxThreads(int32_t maxThreads) noexcept {
  return guarded(reporter_, "IRefitter::setMaxThreads", [&]() -> Result<> {
    if (maxThreads < 1) return fail(ErrorCode::invalid_argument, "{} threads; at least 1 is needed", maxThreads);
    if (maxThreads != 1) LATHE_TRY(notices_.consult(SettingId::IRefitter_setMaxThreads, reporter_.log()));
    max_threads_ = maxThreads;
    return {};
  });
}

void Refitter::setWeightsValidation(bool weightsValidation) noexcept {
  guarded(reporter_, "IRefitter::setWeightsValidation", [&]() -> Result<> {
    if (!weightsValidation) LATHE_TRY(notices_.consult(SettingId::IRefitter_setWeightsValidation, reporter_.log()));
    validates_ = weightsValidation;
    return {};
  });
}

void Refitter::miss(const char* where, const char* name) const noexcept {
  guarded(reporter_, where, [&]() -> Result<> {
    return fail(ErrorCode::invalid_argument, "the engine has no refittable weights '{}'", name ? name : "(null)");
  });
}

nv::Weights Refitter::getNamedWeights(const char* weightsName) const noexcept {
  miss("IRefitter::getNamedWeights", weightsName);
  return {nv::DataType::kFLOAT, nullptr, 0};
}

nv::TensorLocation Refitter::getWeightsLocation(const char* weightsName) const noexcept {
  miss("IRefitter::getWeightsLocation", weightsName);
  return nv::TensorLocation::kHOST;
}

nv::Weights Refitter::getWeightsPrototype(const char* weightsName) const noexcept {
  miss("IRefitter::getWeightsPrototype", weightsName);
  return {nv::DataType::kFLOAT, nullptr, -1};
}

}  // namespace lathe::api
