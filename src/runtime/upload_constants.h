// SPDX-License-Identifier: Apache-2.0
// Copies new contents of constants to a device whose memory is not the host's, at about the pace of a plain copy: while
// one part is copied, the next is computed and packed. Where there is a kernel for it, the device packs, and weights
// are copied as they are.
#pragma once

#include <array>

#include "device/device.h"
#include "runtime/packing_table.h"
#include "runtime/place_constants.h"

namespace lathe {

// One thread at a time.
class ConstantUploader {
 public:
  static constexpr uint64_t kAlignment = 64;  // of constants in the device's memory
  explicit ConstantUploader(Device& device) : device_(device) {}

  // From now on the device packs by it (make_packing_kernel()).
  void set_packing(std::unique_ptr<Kernel> kernel) { packing_ = std::move(kernel); }
  // Bytes of scratch memory of the device that run() needs for the device to pack; 0 = it packs none of them.
  uint64_t scratch_bytes(std::span<const ConstantPlacer::Place> places) const;

  // Takes what run() without scratch memory needs of the host's memory for these places, unless there is enough.
  Result<> prepare(std::span<const ConstantPlacer::Place> places) {
    return prepare(buffer_bytes(places, Packer::host));
  }
  // Returns when all is there, or a number was out of range: then some of it is. The places are whole constants in the
  // device's memory. 16 to 32 MB of pinned memory are kept for the next time. `scratch`: as much as scratch_bytes()
  // says; null = the host packs.
  Result<ConstantPlacer::Found> run(std::span<const ConstantPlacer::Place> places, RangeCheck check, int threads,
                                    std::byte* scratch = nullptr);

 private:
  enum class Packer : uint8_t { host, device };
  // Of a constant.
  struct Part {
    ConstantPlacer::Place in_buffer;
    std::byte* to = nullptr;  // in the device's memory
    // Where the device packs: the constant's place. What is sent are weights, to the buffer's scratch memory.
    const ConstantPlacer::Place* packed = nullptr;
    uint64_t bytes() const;  // of a buffer
  };
  struct Buffer {
    DeviceMemory memory;  // of the host
    std::unique_ptr<Queue> queue;
    std::byte* scratch = nullptr;  // the device's memory for what the buffer has
    std::byte* found = nullptr;    // there, too: an int
  };
  bool packs(const ConstantPlacer::Place& place, Packer packer) const;
  uint64_t buffer_bytes(std::span<const ConstantPlacer::Place> places, Packer packer) const;
  Result<> prepare(uint64_t bytes);  // of each buffer
  Result<> divide(std::byte* scratch, uint64_t bytes);
  void release_large();
  Result<ConstantPlacer::Found> send_unpinned(const Part& part, RangeCheck check, int threads);
  Result<ConstantPlacer::Found> send_all(std::span<Part> parts, RangeCheck check, int threads);
  Result<ConstantPlacer::Found> send(std::span<Part> parts, Buffer& buffer, RangeCheck check, int threads);
  Result<> pack(std::span<const Part> parts, uint64_t offset, Buffer& buffer, RangeCheck check);
  Result<ConstantPlacer::Found> found_by_device();

  Device& device_;
  std::unique_ptr<Kernel> packing_;
  std::array<Buffer, 2> buffers_;  // take turns
};

}  // namespace lathe
