// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "api/model_refit.h"
#include "api/report.h"
#include "api/runtime/cuda_engine.h"
#include "api/settings.h"

namespace lathe::api {

// Keeps what it is given until it is unset or the refitter goes, and gives it to the engine at each refit. Of an engine
// whose weights cannot be replaced it names none, and refuses to refit.
class Refitter final : public nv::IRefitter, public nv::apiv::VRefitter, public ModelRefit {
 public:
  Refitter(std::shared_ptr<EngineCore> engine, nv::ILogger& logger);
  ~Refitter() noexcept override = default;

  nv::IRefitter* getPImpl() noexcept override { return this; }
  bool setWeights(const char* layerName, nv::WeightsRole role, const nv::Weights weights) noexcept override;
  bool refitCudaEngine() noexcept override;
  int32_t getMissing(int32_t size, const char** layerNames, nv::WeightsRole* roles) noexcept override;
  int32_t getAll(int32_t size, const char** layerNames, nv::WeightsRole* roles) noexcept override;
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override { reporter_.set_recorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }
  bool setNamedWeights(const char* name, nv::Weights weights) noexcept override;
  int32_t getMissingWeights(int32_t size, const char** weightsNames) noexcept override;
  int32_t getAllWeights(int32_t size, const char** weightsNames) noexcept override;
  nv::ILogger* getLogger() const noexcept override { return reporter_.logger(); }
  bool setMaxThreads(int32_t maxThreads) noexcept override;
  int32_t getMaxThreads() const noexcept override { return max_threads_; }
  bool setNamedWeightsWithLocation(const char* name, nv::Weights weights,
                                   nv::TensorLocation location) noexcept override;
  nv::Weights getNamedWeights(const char* weightsName) const noexcept override;
  nv::TensorLocation getWeightsLocation(const char* weightsName) const noexcept override;
  bool unsetNamedWeights(const char* weightsName) noexcept override;
  void setWeightsValidation(bool weightsValidation) noexcept override { validates_ = weightsValidation; }
  bool getWeightsValidation() const noexcept override { return validates_; }
  bool refitCudaEngineAsync(cudaStream_t stream) noexcept override;
  nv::Weights getWeightsPrototype(const char* weightsName) const noexcept override;

#if NV_TENSORRT_MAJOR < 11
  bool setDynamicRange(const char*, float, float) noexcept override;
  float getDynamicRangeMin(const char*) const noexcept override { return kNoRange; }
  float getDynamicRangeMax(const char*) const noexcept override { return kNoRange; }
  int32_t getTensorsWithDynamicRange(int32_t, const char**) const noexcept override { return 0; }
#endif

  Result<> check_refittable() const override;
  Result<> give(const Contents& contents) override;

 private:
  Result<> give(size_t number, const Contents& contents);
#if NV_TENSORRT_MAJOR < 11
  static constexpr float kNoRange = std::numeric_limits<float>::quiet_NaN();
  bool refuse(SettingId id) noexcept;
#endif
  struct Given {
    nv::Weights weights{nv::DataType::kFLOAT, nullptr, 0};
    nv::TensorLocation location = nv::TensorLocation::kHOST;
    std::shared_ptr<const void> owner;  // null = the application
  };

  const plan::Refit& weights() const { return engine_->plan().refit; }
  Result<size_t> number_of(const char* name) const;  // of weights that can be replaced
  Result<> set(size_t number, const nv::Weights& given, nv::TensorLocation location,
               std::shared_ptr<const void> owner = nullptr);
  Result<> set_named(const char* name, const nv::Weights& given, nv::TensorLocation location);
  Result<std::vector<Tensor>> contents() const;
  Result<> refit();
  std::vector<bool> all() const;
  std::vector<bool> missing() const;
  using Which = std::vector<bool> (Refitter::*)() const;
  Entry changing() const { return {reporter_, use_}; }
  Entry looking() const { return {reporter_, use_, Exclusive::Call::looks}; }
  int32_t list_names(const char* where, Which which, int32_t size, const char** names) noexcept;
  int32_t list_layers(const char* where, Which which, int32_t size, const char** layers,
                      nv::WeightsRole* roles) noexcept;

  std::shared_ptr<EngineCore> engine_;
  Reporter reporter_;
  mutable Exclusive use_{"refitter"};
  SettingNotices notices_;
  std::vector<std::optional<Given>> given_;  // by number
  int32_t max_threads_ = 1;
  bool validates_ = true;
};

}  // namespace lathe::api
