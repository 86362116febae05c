// SPDX-License-Identifier: Apache-2.0
// The code of one level, unpacked: see cmake/pack_kernels.py, which makes the table below and the jumps through
// lathe_kernel_entries.
#include <sys/mman.h>

#include <mutex>

#include "base/inflate.h"
#include "base/packed_code.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernel_code.h"

namespace {

// An image is bytes for consecutive pages: code and constants, then, from `executable` on, what is written.
struct PackedKernels {
  const std::byte *begin, *end;        // compressed: `places`, which are u32, then the image
  const uintptr_t* imports;            // addresses of what the kernels call
  uint32_t import_count, place_count;  // places: offsets of words to which the image's address is added
  uint32_t bytes, executable;
  uint32_t entries, imported;  // offsets of the functions' addresses, and of the place for `imports`
};

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) extern const PackedKernels lathe_packed_kernels[];  // in the order of IsaLevel
__attribute__((visibility("hidden"))) const void* lathe_kernel_entries = nullptr;
}

namespace lathe::cpu {
namespace {

class Mapping {
 public:
  ~Mapping() {
    if (address_ != MAP_FAILED) ::munmap(address_, bytes_);
  }
  Result<> have(IsaLevel level);

 private:
  std::mutex mutex_;
  void* address_ = MAP_FAILED;
  size_t bytes_ = 0;
};

Result<> Mapping::have(IsaLevel level) {
  const std::lock_guard lock(mutex_);
  if (lathe_kernel_entries) return {};
  const PackedKernels& packed = lathe_packed_kernels[static_cast<int>(level)];
  const size_t places_bytes = packed.place_count * sizeof(uint32_t);
  LATHE_ASSIGN(std::vector<std::byte> content, inflate_bytes({packed.begin, packed.end}, places_bytes + packed.bytes));
  const std::span<std::byte> image = std::span(content).subspan(places_bytes);
  if (address_ == MAP_FAILED) address_ = ::mmap(nullptr, packed.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address_ == MAP_FAILED) return fail(ErrorCode::out_of_memory, "{} bytes for the code of kernels", packed.bytes);
  bytes_ = packed.bytes;
  const auto base = reinterpret_cast<uintptr_t>(address_);
  for (uint32_t i = 0; i < packed.place_count; ++i) {
    uint32_t place = 0;
    uintptr_t word = 0;
    std::memcpy(&place, content.data() + i * sizeof place, sizeof place);
    std::memcpy(&word, image.data() + place, sizeof word);
    word += base;
    std::memcpy(image.data() + place, &word, sizeof word);
  }
  std::memcpy(image.data() + packed.imported, packed.imports, packed.import_count * sizeof(uintptr_t));
  LATHE_TRY(map_code({fmt::format("lathe_kernels_{}", name_of(level)), image, packed.executable},
                     static_cast<std::byte*>(address_)));
  lathe_kernel_entries = reinterpret_cast<const void*>(base + packed.entries);
  return {};
}

}  // namespace

Result<> have_kernel_code() {
  static Mapping mapping;
  return mapping.have(isa_level());
}

}  // namespace lathe::cpu
