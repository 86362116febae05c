// SPDX-License-Identifier: Apache-2.0
// Tells the kernel that plans for a device carry how it computes and packs new contents of constants
// (base/packing_table.inc).
#pragma once

#include "device/device.h"
#include "runtime/derive_constants.h"
#include "runtime/range_check.h"

namespace lathe {
namespace packing {
#include "base/packing_table.inc"
}

// The kernel of a code module. `code`: all of the plan's.
Result<std::unique_ptr<Kernel>> make_packing_kernel(Device& device, std::span<const std::span<const std::byte>> code,
                                                    uint32_t module);

class PackingTable {
 public:
  // Whether the kernel does all that is to be done for a constant: it writes no zeros between elements. What boxes of a
  // damaged plan leave out that overlap, stays as the memory was.
  static bool takes(const ConstantContent& content);

  // What a table has room for.
  struct Extent {
    uint64_t boxes = 0, steps = 0, numbers = 0;
    void add(const ConstantContent& content);  // that it takes
    uint64_t bytes() const;
  };
  // In memory of the host of as many bytes, which is to lie at `address` on the device.
  PackingTable(const Extent& extent, std::byte* memory, std::byte* address, RangeCheck check);

  // One of those that the extent counts. Its weights lie at `from` on the device.
  void add(const ConstantContent& content, const std::byte* from, std::byte* to);
  // When it lies there. `found`: address of an int which becomes 1 where a number is out of range of a type that holds
  // less than the weights'.
  Result<> launch(const Kernel& kernel, std::byte* found, Queue& queue) const;

 private:
  void add_box(const PackingBox& box, packing::PackedBox packed);

  std::byte* const memory_;
  std::byte* const address_;
  const RangeCheck check_;
  packing::PackedBox* box_;  // where the next one goes
  packing::PackedStep *steps_, *step_;
  double* number_;
  long blocks_ = 0;
};

}  // namespace lathe
