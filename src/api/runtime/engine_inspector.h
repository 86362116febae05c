// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "api/runtime/cuda_engine.h"

namespace lathe::api {

// The verbosity that the plan was built with.
nv::ProfilingVerbosity verbosity_of(const plan::Plan& plan);
const char* name_of(nv::ProfilingVerbosity verbosity);

class EngineInspector final : public nv::IEngineInspector, public nv::apiv::VEngineInspector {
 public:
  explicit EngineInspector(std::shared_ptr<EngineCore> core)
      : core_(std::move(core)), reporter_(std::shared_ptr<const Reporter>(core_->reporter)) {
    mImpl = this;
  }
  ~EngineInspector() noexcept override = default;

  nv::IEngineInspector* getPImpl() noexcept override { return this; }
  bool setExecutionContext(const nv::IExecutionContext* context) noexcept override;
  const nv::IExecutionContext* getExecutionContext() const noexcept override { return context_; }
  const char* getLayerInformation(int32_t layerIndex, nv::LayerInformationFormat format) const noexcept override;
  const char* getEngineInformation(nv::LayerInformationFormat format) const noexcept override;
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override { reporter_.set_recorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }

 private:
  // The dims under the context's shapes where there is a context and they are set.
  struct TensorInfo {
    std::string_view name;
    const char* location;
    Dims dims;
    DType type;
  };
  TensorInfo look_at(plan::TensorId id) const;
  std::vector<TensorInfo> look_at(std::span<const plan::TensorId> ids) const;
  static Json to_json(std::span<const TensorInfo> tensors);
  static std::string to_line(std::span<const TensorInfo> tensors);
  Json to_json(size_t layer) const;
  std::string to_line(size_t layer) const;

  std::shared_ptr<EngineCore> core_;
  Reporter reporter_;
  mutable Exclusive use_{"inspector"};
  const nv::IExecutionContext* context_ = nullptr;
  mutable std::string text_;  // of the last answer
};

}  // namespace lathe::api
