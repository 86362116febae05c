// SPDX-License-Identifier: Apache-2.0
// The small configurations of the runtime side.
#pragma once

#include <memory>

#include "api/convert.h"
#include "api/report.h"
#include "api/settings.h"

namespace lathe::api {

class RuntimeConfig final : public nv::IRuntimeConfig, public nv::apiv::VRuntimeConfig {
 public:
  explicit RuntimeConfig(std::shared_ptr<const Reporter> reporter) : reporter_(std::move(reporter)) { mImpl = this; }
  ~RuntimeConfig() noexcept override = default;

  int32_t cpu_threads = 0;  // lathe::setCpuThreads; 0 = the runtime's

  nv::IRuntimeConfig* getPImpl() noexcept override { return this; }
  void setExecutionContextAllocationStrategy(nv::ExecutionContextAllocationStrategy strategy) noexcept override {
    guarded(*reporter_, "IRuntimeConfig::setExecutionContextAllocationStrategy", [&]() -> Result<> {
      LATHE_TRY(notices_.consult(strategy, reporter_->log()));
      strategy_ = strategy;
      return {};
    });
  }
  nv::ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const noexcept override {
    return strategy_;
  }

 private:
  std::shared_ptr<const Reporter> reporter_;
  SettingNotices notices_;
  nv::ExecutionContextAllocationStrategy strategy_ = nv::ExecutionContextAllocationStrategy::kSTATIC;
};

class SerializationConfig final : public nv::ISerializationConfig, public nv::apiv::VSerializationConfig {
 public:
  explicit SerializationConfig(std::shared_ptr<const Reporter> reporter) : reporter_(std::move(reporter)) {
    mImpl = this;
  }
  ~SerializationConfig() noexcept override = default;

  bool setFlags(nv::SerializationFlags serializationFlags) noexcept override {
    return put_flags("ISerializationConfig::setFlags", serializationFlags);
  }
  nv::SerializationFlags getFlags() const noexcept override { return flags_; }
  bool clearFlag(nv::SerializationFlag flag) noexcept override {
    return put_flags("ISerializationConfig::clearFlag", flags_ & ~bit_of(flag));
  }
  bool setFlag(nv::SerializationFlag flag) noexcept override {
    return put_flags("ISerializationConfig::setFlag", flags_ | bit_of(flag));
  }
  bool getFlag(nv::SerializationFlag flag) const noexcept override { return flags_ & bit_of(flag); }

 private:
  bool put_flags(const char* where, nv::SerializationFlags flags) noexcept {
    return guarded(*reporter_, where, [&]() -> Result<> {
      LATHE_TRY(notices_.consult_flags<nv::SerializationFlag>(flags, 0, reporter_->log()));
      flags_ = flags;
      return {};
    });
  }

  std::shared_ptr<const Reporter> reporter_;
  SettingNotices notices_;
  nv::SerializationFlags flags_ = 0;
};

}  // namespace lathe::api
