// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/convert.h"
#include "api/report.h"
#include "api/settings.h"

namespace lathe::api {

// Ranges of inputs, as the application gave them.
struct InputRange {
  std::array<std::optional<nv::Dims>, 3> dims;                // by OptProfileSelector
  std::array<std::optional<std::vector<int64_t>>, 3> values;  // of a shape tensor
};

class OptimizationProfile final : public nv::IOptimizationProfile, public nv::apiv::VOptimizationProfile {
 public:
  explicit OptimizationProfile(std::shared_ptr<const Reporter> reporter) : reporter_(std::move(reporter)) {
    mImpl = this;
  }
  ~OptimizationProfile() noexcept override = default;

  const std::map<std::string, InputRange, std::less<>>& inputs() const { return inputs_; }

  Exclusive& use() const { return use_; }

  bool setDimensions(const char* inputName, nv::OptProfileSelector select, const nv::Dims& dims) noexcept override;
  nv::Dims getDimensions(const char* inputName, nv::OptProfileSelector select) const noexcept override;
  int32_t getNbShapeValues(const char* inputName) const noexcept override;
  bool setExtraMemoryTarget(float target) noexcept override;
  float getExtraMemoryTarget() const noexcept override { return extra_memory_target_; }
  bool isValid() const noexcept override;
  bool setShapeValuesV2(const char* inputName, nv::OptProfileSelector select, const int64_t* values,
                        int32_t nbValues) noexcept override;
  const int64_t* getShapeValuesV2(const char* inputName, nv::OptProfileSelector select) const noexcept override;

#if NV_TENSORRT_MAJOR < 11
  bool setShapeValues(const char* inputName, nv::OptProfileSelector select, const int32_t* values,
                      int32_t nbValues) noexcept override;
  const int32_t* getShapeValues(const char* inputName, nv::OptProfileSelector select) const noexcept override;
#endif

 private:
  Result<const InputRange*> find(const char* name) const;
  Entry looking() const { return {*reporter_, use_, Exclusive::Call::looks}; }

  std::shared_ptr<const Reporter> reporter_;
  mutable Exclusive use_{"optimization profile"};
  SettingNotices notices_;
  std::map<std::string, InputRange, std::less<>> inputs_;
  float extra_memory_target_ = 1.0f;
#if NV_TENSORRT_MAJOR < 11
  mutable std::map<std::string, std::array<std::vector<int32_t>, 3>> narrow_;  // what getShapeValues() hands out
#endif
};

}  // namespace lathe::api
