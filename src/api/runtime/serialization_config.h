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
    return put_flags("ISerializationConfig::setFlags", ~Flags{0}, serializationFlags);
  }
  nv::SerializationFlags getFlags() const noexcept override { return flags_; }
  bool clearFlag(nv::SerializationFlag flag) noexcept override {
    return put_flags("ISerializationConfig::clearFlag", bit_of(flag), 0);
  }
  bool setFlag(nv::SerializationFlag flag) noexcept override {
    return put_flags("ISerializationConfig::setFlag", bit_of(flag), bit_of(flag));
  }
  bool getFlag(nv::SerializationFlag flag) const noexcept override { return flags_ & bit_of(flag); }

 private:
  using Flags = nv::SerializationFlags;

  // Of the flags, those of `which` become what they are in `values`.
  bool put_flags(const char* where, Flags which, Flags values) noexcept {
    return guarded(Entry{*reporter_, use_}, where, [&]() -> Result<> {
      const Flags flags = (flags_ & ~which) | (values & which);
      LATHE_TRY(notices_.consult_flags<nv::SerializationFlag>(flags, 0, reporter_->log()));
      flags_ = flags;
      return {};
    });
  }

  std::shared_ptr<const Reporter> reporter_;
  mutable Exclusive use_{"serialization configuration"};
  SettingNotices notices_;
  Flags flags_ = 0;
};

}  // namespace lathe::api
