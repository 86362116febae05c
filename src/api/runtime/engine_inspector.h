// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

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
  std::shared_ptr<EngineCore> core_;
  Reporter reporter_;
  mutable Exclusive use_{"inspector"};
  // The dims under the context's shapes where there is a context and they are set.
  Json describe(plan::TensorId id) const;
  Json describe(const plan::Step& step) const;
  Json layer(const plan::Step& step) const;

  const nv::IExecutionContext* context_ = nullptr;
  mutable std::string text_;  // of the last answer
};

}  // namespace lathe::api
