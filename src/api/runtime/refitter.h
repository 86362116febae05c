// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>

#include "api/report.h"
#include "api/runtime/cuda_engine.h"
#include "api/settings.h"

namespace lathe::api {

// Of an engine whose weights cannot be replaced, as all are: it has none to name, and refuses to refit. Programs that
// do not ask whether they were given a refitter meet an error, not a null pointer.
class Refitter final : public nv::IRefitter, public nv::apiv::VRefitter {
 public:
  Refitter(std::shared_ptr<EngineCore> engine, nv::ILogger& logger) : engine_(std::move(engine)), reporter_(&logger) {
    mImpl = this;
  }
  ~Refitter() noexcept override = default;

  nv::IRefitter* getPImpl() noexcept override { return this; }
  bool setWeights(const char*, nv::WeightsRole, const nv::Weights) noexcept override;
  bool refitCudaEngine() noexcept override;
  int32_t getMissing(int32_t, const char**, nv::WeightsRole*) noexcept override { return 0; }
  int32_t getAll(int32_t, const char**, nv::WeightsRole*) noexcept override { return 0; }
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override { reporter_.set_recorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }
  bool setNamedWeights(const char*, nv::Weights) noexcept override;
  int32_t getMissingWeights(int32_t, const char**) noexcept override { return 0; }
  int32_t getAllWeights(int32_t, const char**) noexcept override { return 0; }
  nv::ILogger* getLogger() const noexcept override { return reporter_.logger(); }
  bool setMaxThreads(int32_t maxThreads) noexcept override;
  int32_t getMaxThreads() const noexcept override { return max_threads_; }
  bool setNamedWeightsWithLocation(const char*, nv::Weights, nv::TensorLocation) noexcept override;
  nv::Weights getNamedWeights(const char* weightsName) const noexcept override;
  nv::TensorLocation getWeightsLocation(const char* weightsName) const noexcept override;
  bool unsetNamedWeights(const char*) noexcept override;
  void setWeightsValidation(bool weightsValidation) noexcept override;
  bool getWeightsValidation() const noexcept override { return validates_; }
  bool refitCudaEngineAsync(cudaStream_t) noexcept override;
  nv::Weights getWeightsPrototype(const char* weightsName) const noexcept override;

#if NV_TENSORRT_MAJOR < 11
  bool setDynamicRange(const char*, float, float) noexcept override;
  float getDynamicRangeMin(const char*) const noexcept override { return kNoRange; }
  float getDynamicRangeMax(const char*) const noexcept override { return kNoRange; }
  int32_t getTensorsWithDynamicRange(int32_t, const char**) const noexcept override { return 0; }
#endif

 private:
#if NV_TENSORRT_MAJOR < 11
  static constexpr float kNoRange = std::numeric_limits<float>::quiet_NaN();
#endif
  bool refuse(SettingId id) noexcept;
  bool refuse_to_refit(const char* where) noexcept;
  // Reports that there are none of the name.
  void miss(const char* where, const char* name) const noexcept;

  std::shared_ptr<EngineCore> engine_;
  Reporter reporter_;
  SettingNotices notices_;
  int32_t max_threads_ = 1;
  bool validates_ = true;
};

}  // namespace lathe::api
