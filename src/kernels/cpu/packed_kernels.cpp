// SPDX-License-Identifier: Apache-2.0
// Unpacks the code of one level (see cmake/pack_kernels.py, which makes the table below and the jumps through
// lathe_kernel_entries) and that of its callers (cmake/pack_code.py). It lies in files in memory, so that
// /proc/self/maps and profilers show their names, else in memory without one.
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
// The linker's names for the callers' section.
__attribute__((visibility("hidden"))) extern std::byte __start_lathe_packed[], __stop_lathe_packed[];
}

namespace lathe::cpu {
namespace {

// Code with what it reads, `executable` bytes, and then what it writes.
struct Image {
  std::string name;
  std::span<const std::byte> content;
  size_t executable;
};

bool map_file(const Image& image, std::byte* to) {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC of Linux 6.3, where a file may otherwise not be executed
  int file = ::memfd_create(image.name.c_str(), MFD_CLOEXEC | kExecutable);
  if (file < 0 && errno == EINVAL) file = ::memfd_create(image.name.c_str(), MFD_CLOEXEC);
  if (file < 0) return false;
  const size_t size = image.content.size(), executable = image.executable;
  const bool mapped =
      ::write(file, image.content.data(), size) == static_cast<ssize_t>(size) &&
      ::mmap(to, executable, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) != MAP_FAILED &&
      (executable == size || ::mmap(to + executable, size - executable, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                                    file, static_cast<off_t>(executable)) != MAP_FAILED);
  ::close(file);
  return mapped;
}

// What was at `to` stays there unless all of this succeeds.
bool map_anonymously(const Image& image, std::byte* to) {
  const size_t size = image.content.size(), executable = image.executable;
  void* const made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  auto* const from = static_cast<std::byte*>(made);
  std::memcpy(from, image.content.data(), size);
  const auto move = [&](size_t at, size_t bytes) {
    return ::mremap(from + at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to + at) != MAP_FAILED;
  };
  const bool mapped = ::mprotect(from, executable, PROT_READ | PROT_EXEC) == 0 && move(0, executable) &&
                      (executable == size || move(executable, size - executable));
  if (!mapped) ::munmap(from, size);
  return mapped;
}

// Over what is mapped at `to`.
Result<> map_code(const Image& image, std::byte* to) {
  if (map_file(image, to) || map_anonymously(image, to)) return {};
  return fail(ErrorCode::invalid_state,
              "the code of kernels ({}) cannot be mapped: {}; a policy of the system (SELinux, seccomp) that lets this "
              "process make executable memory mends it, and so does liblathe.so, whose kernels are not packed",
              image.name, std::generic_category().message(errno));
}

// The callers lie where they were linked, of which the file has them compressed: an image of their own size.
Result<> have_callers() {
  const std::span<std::byte> section(__start_lathe_packed, __stop_lathe_packed);
  LATHE_ASSIGN(const std::vector<std::byte> code, inflate_bytes(section, section.size()));
  return map_code({"lathe_kernel_callers", code, code.size()}, section.data());
}

class Mapping {
 public:
  ~Mapping() {
    if (address_ != MAP_FAILED) ::munmap(address_, bytes_);
  }
  Result<> have(IsaLevel level);

 private:
  Result<> have_level(IsaLevel level);

  std::mutex mutex_;
  void* address_ = MAP_FAILED;
  size_t bytes_ = 0;
  bool has_callers_ = false;
};

Result<> Mapping::have(IsaLevel level) {
  const std::lock_guard lock(mutex_);
  if (!has_callers_) LATHE_TRY(have_callers());
  has_callers_ = true;
  return lathe_kernel_entries ? Result<>{} : have_level(level);
}

Result<> Mapping::have_level(IsaLevel level) {
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
