// SPDX-License-Identifier: Apache-2.0
// Memory of the host that a device copies from while it computes.
#pragma once

#include "device/device.h"

namespace lathe {

// Implemented, beside Device, by devices whose memory is not the host's.
class PinningDevice {
 public:
  // Memory of the host, whatever MemorySource the device has. Device::copy() may read it, and returns before it has.
  virtual Result<DeviceMemory> allocate_pinned(size_t bytes) = 0;

 protected:
  ~PinningDevice() = default;
};

}  // namespace lathe
