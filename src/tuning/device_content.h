// SPDX-License-Identifier: Apache-2.0
// What a device's memory holds while candidates are measured.
#pragma once

#include "device/device.h"

namespace lathe {

// Random numbers, the same short piece again and again, which is brought from the host once: large tensors take long.
Result<> fill_device(const DeviceMemory& memory, DType dtype, uint32_t seed, Device& device, Queue& queue);

// Whether a tensor is so large that it is given such numbers where its content is known, too: it makes no kernel faster
// or slower.
bool takes_any_floats(DType dtype, size_t bytes, const Device& device);

}  // namespace lathe
