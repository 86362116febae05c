// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace lathe {
namespace {

std::string errno_text() { return std::generic_category().message(errno); }

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(ErrorCode::file_not_found, "cannot open '{}': {}", path, errno_text());
  return map_descriptor(descriptor, path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::map_descriptor(int descriptor, const std::string& path) {
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return fail(ErrorCode::file_read, "cannot stat '{}': {}", path, errno_text());
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::file_read, "'{}' is not a regular file", path);
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->size_ = static_cast<size_t>(info.st_size);
  if (file->size_ == 0) return file;
  void* address = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (address == MAP_FAILED) return fail(ErrorCode::file_read, "cannot map '{}': {}", path, errno_text());
  file->data_ = static_cast<const std::byte*>(address);
  return file;
}

void MappedFile::forget_pages() const {
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace lathe
