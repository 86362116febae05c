// SPDX-License-Identifier: Apache-2.0
// How much of its device's L2 cache a context may have set aside for what it computes with.
#pragma once

#include <memory>

#include "base/log.h"
#include "device/device.h"

namespace lathe::api {

// One per context, which it counts among those of its device while it lives. Thread-safe but for calls of one object.
class CacheLimit {
 public:
  CacheLimit() = default;
  CacheLimit(const CacheLimit&) = delete;
  ~CacheLimit();
  // Refuses more than the device can set aside, and warns where all contexts together want more. Devices without such a
  // cache keep the number, and nothing comes of it.
  Result<> set(const std::shared_ptr<Device>& device, size_t bytes, Log& log);
  size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  size_t bytes_ = 0;
};

}  // namespace lathe::api
