// SPDX-License-Identifier: Apache-2.0
#include "base/packed_code.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <vector>

#include "base/inflate.h"

// The linker's names for the section of packed functions: they lie where they were linked, of which the file has them
// compressed.
extern "C" {
__attribute__((visibility("hidden"))) extern std::byte __start_lathe_packed[], __stop_lathe_packed[];
}

namespace lathe {
namespace {

bool map_file(const CodeContent& code, std::byte* to) {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC of Linux 6.3, where a file may otherwise not be executed
  int file = ::memfd_create(code.name.c_str(), MFD_CLOEXEC | kExecutable);
  if (file < 0 && errno == EINVAL) file = ::memfd_create(code.name.c_str(), MFD_CLOEXEC);
  if (file < 0) return false;
  const size_t size = code.bytes.size(), executable = code.executable;
  const bool mapped =
      ::write(file, code.bytes.data(), size) == static_cast<ssize_t>(size) &&
      ::mmap(to, executable, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) != MAP_FAILED &&
      (executable == size || ::mmap(to + executable, size - executable, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                                    file, static_cast<off_t>(executable)) != MAP_FAILED);
  ::close(file);
  return mapped;
}

// What was at `to` stays there unless all of this succeeds.
bool map_anonymously(const CodeContent& code, std::byte* to) {
  const size_t size = code.bytes.size(), executable = code.executable;
  void* const made = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  auto* const from = static_cast<std::byte*>(made);
  std::memcpy(from, code.bytes.data(), size);
  const auto move = [&](size_t at, size_t bytes) {
    return ::mremap(from + at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to + at) != MAP_FAILED;
  };
  const bool mapped = ::mprotect(from, executable, PROT_READ | PROT_EXEC) == 0 && move(0, executable) &&
                      (executable == size || move(executable, size - executable));
  if (!mapped) ::munmap(from, size);
  return mapped;
}

// cmake/pack_code.py has the places that are called, highest byte first, where calls have distances.
void restore_calls(std::span<std::byte> code) {
  constexpr size_t kSize = 5;
  for (size_t at = 0; at + kSize <= code.size(); at += kSize) {
    const void* const call = std::memchr(&code[at], 0xE8, code.size() - kSize + 1 - at);
    if (!call) return;
    at = static_cast<size_t>(static_cast<const std::byte*>(call) - code.data());
    uint32_t place = 0;
    for (size_t i = 1; i < kSize; ++i) place = place << 8 | static_cast<uint32_t>(code[at + i]);
    const uint32_t distance = place - static_cast<uint32_t>(at + kSize);
    for (size_t i = 1; i < kSize; ++i) code[at + i] = static_cast<std::byte>(distance >> (8 * (i - 1)));
  }
}

}  // namespace

Result<> map_code(const CodeContent& code, std::byte* to) {
  if (map_file(code, to) || map_anonymously(code, to)) return {};
  return fail(ErrorCode::invalid_state,
              "packed code ({}) cannot be mapped: {}; a policy of the system (SELinux, seccomp) that lets this "
              "process make executable memory mends it, and so does liblathe.so, in which nothing is packed",
              code.name, std::generic_category().message(errno));
}

Result<> have_packed_code() {
  static std::mutex mutex;
  static std::atomic<bool> is_there = false;
  if (is_there) return {};
  const std::lock_guard lock(mutex);
  if (is_there) return {};
  const std::span<std::byte> section(__start_lathe_packed, __stop_lathe_packed);
  LATHE_ASSIGN(std::vector<std::byte> code, inflate_bytes(section, section.size()));
  restore_calls(code);
  LATHE_TRY(map_code({"lathe_packed_code", code, code.size()}, section.data()));
  is_there = true;
  return {};
}

}  // namespace lathe
