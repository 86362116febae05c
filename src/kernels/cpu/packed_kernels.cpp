// SPDX-License-Identifier: Apache-2.0
// The code of one level, unpacked: see cmake/pack_kernels.py, which makes the table below and the jumps through
// lathe_kernel_entries. It lies in a file in memory, so that /proc/self/maps and profilers show its name, else in
// memory without one.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>

#include "base/inflate.h"
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
  bool map_file(std::string_view level, std::span<const std::byte> image, size_t executable);
  bool map_anonymously(std::span<const std::byte> image, size_t executable);

  std::mutex mutex_;
  void* address_ = MAP_FAILED;
  size_t bytes_ = 0;
};

bool Mapping::map_file(std::string_view level, std::span<const std::byte> image, size_t executable) {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC of Linux 6.3, where a file may otherwise not be executed
  const std::string name = fmt::format("lathe_kernels_{}", level);
  int file = ::memfd_create(name.c_str(), MFD_CLOEXEC | kExecutable);
  if (file < 0 && errno == EINVAL) file = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file < 0) return false;
  auto* const to = static_cast<std::byte*>(address_);
  const bool mapped = ::write(file, image.data(), image.size()) == static_cast<ssize_t>(image.size()) &&
                      ::mmap(to, executable, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) != MAP_FAILED &&
                      ::mmap(to + executable, image.size() - executable, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_FIXED, file, static_cast<off_t>(executable)) != MAP_FAILED;
  ::close(file);
  return mapped;
}

bool Mapping::map_anonymously(std::span<const std::byte> image, size_t executable) {
  void* const to =
      ::mmap(address_, image.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (to == MAP_FAILED) return false;
  std::memcpy(to, image.data(), image.size());
  return ::mprotect(to, executable, PROT_READ | PROT_EXEC) == 0;
}

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
  if (!map_file(name_of(level), image, packed.executable) && !map_anonymously(image, packed.executable))
    return fail(
        ErrorCode::invalid_state,
        "the code of kernels for {} cannot be mapped: {}; a policy of the system (SELinux, seccomp) that lets this "
        "process make executable memory mends it, and so does liblathe.so, whose kernels are not packed",
        name_of(level), std::generic_category().message(errno));
  lathe_kernel_entries = reinterpret_cast<const void*>(base + packed.entries);
  return {};
}

}  // namespace

Result<> have_kernel_code() {
  static Mapping mapping;
  return mapping.have(isa_level());
}

}  // namespace lathe::cpu
