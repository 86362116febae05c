// SPDX-License-Identifier: Apache-2.0
// Kernels of the host that keep constants in another form than their plan has them.
#pragma once

#include <span>

#include "device/device.h"

namespace lathe {

// A base of such kernels, beside Kernel.
class TakesConstants {
 public:
  virtual ~TakesConstants() = default;
  // Called once, before anything runs: inputs that are constants have data, which stays where it is; others have none.
  // What the kernel makes of them is in memory of the device, and lasts as long as the kernel.
  virtual Result<> take_constants(std::span<const TensorArg> inputs, Device& device) = 0;
  virtual size_t taken_bytes() const = 0;  // of that memory
};

}  // namespace lathe
