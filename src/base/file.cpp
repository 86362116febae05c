// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/folder.h"

namespace lathe {
namespace {

constexpr std::string_view kTemporary = ".tmp";

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

Result<> write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  static std::atomic<unsigned> writes = 0;  // threads may write the same file
  const std::string temporary = fmt::format("{}.{}.{}{}", path, ::getpid(), ++writes, kTemporary);
  std::FILE* file = std::fopen(temporary.c_str(), "wbe");
  if (!file) return fail(ErrorCode::file_read, "cannot create '{}': {}", temporary, errno_text());
  const bool written = bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const std::string reason = errno_text();
  std::remove(temporary.c_str());
  return fail(ErrorCode::file_read, "cannot write '{}': {}", path, reason);
}

void remove_leftovers(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).parent_path();
  const std::string start = fs::path(path).filename().string() + ".";
  for (const fs::path& entry : entries_of(folder.empty() ? "." : folder)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(start) || !name.ends_with(kTemporary) || name.size() < start.size() + kTemporary.size())
      continue;
    const std::string_view numbers(name.data() + start.size(), name.size() - start.size() - kTemporary.size());
    std::error_code ignored;  // it is in nobody's way
    if (numbers.find_first_not_of("0123456789.") == std::string_view::npos) fs::remove(entry, ignored);
  }
}

}  // namespace lathe
