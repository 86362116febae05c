// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

namespace lathe {
namespace {

constexpr auto kPause = std::chrono::milliseconds(50);

std::string errno_text() { return std::generic_category().message(errno); }

}  // namespace

Result<FileLock> FileLock::take(const std::string& path, Kind kind, std::chrono::milliseconds patience) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return fail(ErrorCode::file_read, "cannot open the lock file '{}': {}", path, errno_text());
  FileLock lock(descriptor);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(descriptor, (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return fail(ErrorCode::file_read, "cannot lock '{}': {}", path, errno_text());
    const auto now = std::chrono::steady_clock::now();
    if (now >= end)
      return fail(ErrorCode::invalid_state, "another process has held the lock '{}' for {} ms", path, patience.count());
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kPause, end - now));
  }
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);  // which gives the lock back
}

}  // namespace lathe
