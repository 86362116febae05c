// SPDX-License-Identifier: Apache-2.0
#include "api/guest/private_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace lathe::api::guest {
namespace {

std::string reason() { return std::generic_category().message(errno); }

// dlopen() caches by path name: the number of slashes varies, so that a descriptor that is used again is never taken
// for the library that it was before.
std::string path_of(int descriptor) {
  static std::atomic<unsigned> files = 0;
  constexpr unsigned kNames = 512;
  return fmt::format("/proc/self/fd{}{}", std::string(1 + files++ % kNames, '/'), descriptor);
}

}  // namespace

std::string default_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory && *directory ? directory : "/tmp";
}

Result<> check_directory(const std::string& path) {
  if (::access((path + "/").c_str(), R_OK | W_OK | X_OK) == 0) return {};
  return fail(ErrorCode::file_read, "temporary files cannot be made in '{}': {}", path, reason());
}

Result<std::unique_ptr<PrivateFile>> PrivateFile::make(const ImagePolicy& policy, std::string what) {
  std::unique_ptr<PrivateFile> file(new PrivateFile(std::move(what)));
  LATHE_TRY(file->open(policy));
  return file;
}

Result<> PrivateFile::add(std::span<const std::byte> part) {
  while (!part.empty()) {
    const ssize_t written = ::write(descriptor_, part.data(), part.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(ErrorCode::file_read, "cannot write {}: {}", what_, reason());
    part = part.subspan(static_cast<size_t>(written));
  }
  return {};
}

PrivateFile::~PrivateFile() {
  hide();
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PrivateFile::hide() {
  if (is_linked_) ::unlink(path_.c_str());
  is_linked_ = false;
}

bool PrivateFile::open_in_memory() {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC of Linux 6.3, where a file may otherwise not be executed
  constexpr const char* kName = "lathe_lean";
  descriptor_ = ::memfd_create(kName, MFD_CLOEXEC | kExecutable);
  if (descriptor_ < 0 && errno == EINVAL) descriptor_ = ::memfd_create(kName, MFD_CLOEXEC);
  if (descriptor_ < 0) return false;
  path_ = path_of(descriptor_);
  return true;
}

Result<> PrivateFile::open_in_folder(const std::string& folder) {
  LATHE_TRY(check_directory(folder));
  path_ = folder + "/lathe_lean_XXXXXX";
  descriptor_ = ::mkostemp(path_.data(), O_CLOEXEC);  // mode 0600
  if (descriptor_ < 0) return fail(ErrorCode::file_read, "cannot make a temporary file in '{}': {}", folder, reason());
  is_linked_ = true;
  return {};
}

Result<> PrivateFile::open(const ImagePolicy& policy) {
  std::string why = "TempfileControlFlags do not allow files in memory";
  if (policy.in_memory) {
    if (open_in_memory()) return {};
    why = fmt::format("the kernel gives no file in memory ({})", reason());
  }
  if (!policy.temporary_files)
    return fail(ErrorCode::library_refused,
                "{} cannot be loaded: {}, nor temporary ones; allow one by IRuntime::setTempfileControlFlags()", what_,
                why);
  return open_in_folder(policy.directory.empty() ? default_directory() : policy.directory);
}

}  // namespace lathe::api::guest
