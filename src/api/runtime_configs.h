// SPDX-License-Identifier: Apache-2.0
// The small configurations of the runtime side.
#pragma once

#include "api/convert.h"

namespace lathe::api {

class RuntimeConfig final : public nv::IRuntimeConfig, public nv::apiv::VRuntimeConfig {
 public:
  RuntimeConfig() { mImpl = this; }
  ~RuntimeConfig() noexcept override = default;

  int32_t cpu_threads = 0;  // lathe::setCpuThreads; 0 = the runtime's

  nv::IRuntimeConfig* getPImpl() noexcept override { return this; }
  void setExecutionContextAllocationStrategy(nv::ExecutionContextAllocationStrategy strategy) noexcept override {
    strategy_ = strategy;
  }
  nv::ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const noexcept override {
    return strategy_;
  }

 private:
  nv::ExecutionContextAllocationStrategy strategy_ = nv::ExecutionContextAllocationStrategy::kSTATIC;
};

class SerializationConfig final : public nv::ISerializationConfig, public nv::apiv::VSerializationConfig {
 public:
  SerializationConfig() { mImpl = this; }
  ~SerializationConfig() noexcept override = default;

  bool setFlags(nv::SerializationFlags serializationFlags) noexcept override {
    if (serializationFlags >> nv::EnumMax<nv::SerializationFlag>() != 0) return false;
    flags_ = serializationFlags;
    return true;
  }
  nv::SerializationFlags getFlags() const noexcept override { return flags_; }
  bool clearFlag(nv::SerializationFlag flag) noexcept override { return setFlags(flags_ & ~bit_of(flag)); }
  bool setFlag(nv::SerializationFlag flag) noexcept override { return setFlags(flags_ | bit_of(flag)); }
  bool getFlag(nv::SerializationFlag flag) const noexcept override { return flags_ & bit_of(flag); }

 private:
  nv::SerializationFlags flags_ = 0;
};

}  // namespace lathe::api
