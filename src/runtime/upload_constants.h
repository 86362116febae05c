// SPDX-License-Identifier: Apache-2.0
// Copies new contents of constants to a device whose memory is not the host's, at about the pace of a plain copy: while
// one part is copied, the next is computed and packed.
#pragma once

#include <array>

#include "device/device.h"
#include "runtime/place_constants.h"

namespace lathe {

// One thread at a time.
class ConstantUploader {
 public:
  static constexpr uint64_t kAlignment = 64;  // of constants in the device's memory
  explicit ConstantUploader(Device& device) : device_(device) {}

  // Takes what run() needs of the host's memory for these places, unless there is enough.
  Result<> prepare(std::span<const ConstantPlacer::Place> places);
  // Returns when all is there, or a number was out of range: then some of it is. The places are whole constants in the
  // device's memory. 16 to 32 MB of pinned memory are kept for the next time.
  Result<ConstantPlacer::Found> run(std::span<const ConstantPlacer::Place> places, RangeCheck check, int threads);

 private:
  // Of a constant.
  struct Part {
    ConstantPlacer::Place in_buffer;
    std::byte* to;  // in the device's memory
  };
  struct Buffer {
    DeviceMemory memory;  // of the host
    std::unique_ptr<Queue> queue;
  };
  void release_large();
  Result<ConstantPlacer::Found> send_unpinned(const Part& part, RangeCheck check, int threads);
  Result<ConstantPlacer::Found> send_all(std::span<Part> parts, RangeCheck check, int threads);
  Result<ConstantPlacer::Found> send(std::span<Part> parts, Buffer& buffer, RangeCheck check, int threads);

  Device& device_;
  std::array<Buffer, 2> buffers_;  // take turns
};

}  // namespace lathe
