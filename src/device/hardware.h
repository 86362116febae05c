// SPDX-License-Identifier: Apache-2.0
// Properties in which devices of one architecture differ. A plan remembers those of the device that it was tuned on.
#pragma once

#include <cstdint>

namespace lathe {

struct HardwareProperties {
  uint32_t memory_bus_bits = 0;
  uint64_t cache_bytes = 0;         // of the L2
  uint32_t block_shared_bytes = 0;  // the most that a block may ask for
  uint32_t core_shared_bytes = 0;   // of a multiprocessor
  uint32_t texture_alignment = 0;   // bytes
  uint32_t cores = 0;               // multiprocessors; 0 = nothing is known
  bool is_integrated = false;       // its memory is the host's

  bool is_known() const { return cores > 0; }
  bool operator==(const HardwareProperties&) const = default;
};

// Implemented, beside Device, by devices that differ so.
class HardwareDevice {
 public:
  virtual HardwareProperties hardware() const = 0;

 protected:
  ~HardwareDevice() = default;
};

}  // namespace lathe
