// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "api/convert.h"
#include "api/report.h"
#include "api/settings.h"

namespace lathe::api {

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
    return guarded(Entry{*reporter_, use_}, where, [&]() -> Result<> {
      LATHE_TRY(notices_.consult_flags<nv::SerializationFlag>(flags, 0, reporter_->log()));
      flags_ = flags;
      return {};
    });
  }

  std::shared_ptr<const Reporter> reporter_;
  mutable Exclusive use_{"serialization configuration"};
  SettingNotices notices_;
  nv::SerializationFlags flags_ = 0;
};

}  // namespace lathe::api
