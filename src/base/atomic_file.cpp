// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <fcntl.h>
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

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  static std::atomic<unsigned> writes = 0;  // threads may write the same file
  AtomicFile file(path, fmt::format("{}.{}.{}{}", path, ::getpid(), ++writes, kTemporary));
  file.stream_.reset(std::fopen(file.temporary_.c_str(), "w+be"));
  if (!file.stream_)
    return fail(ErrorCode::file_read, "cannot create '{}': {}", file.temporary_,
                std::generic_category().message(errno));
  return file;
}

AtomicFile::~AtomicFile() {
  if (stream_) std::remove(temporary_.c_str());
}

tl::unexpected<Error> AtomicFile::failed() const {
  return fail(ErrorCode::file_read, "cannot write '{}': {}", path_, std::generic_category().message(errno));
}

Result<> AtomicFile::reserve(uint64_t bytes) {
#ifdef __linux__
  if (::access(path_.c_str(), F_OK) != 0) return {};
  const bool is_taken = ::fallocate(::fileno(stream_.get()), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0;
  if (!is_taken && errno == ENOSPC) return failed();
#endif
  return {};
}

Result<> AtomicFile::write(std::span<const std::byte> bytes) {
  if (bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), stream_.get()) == bytes.size()) return {};
  return failed();
}

Result<std::shared_ptr<const MappedFile>> AtomicFile::map() {
  if (std::fflush(stream_.get()) != 0) return failed();
  const int descriptor = ::fcntl(::fileno(stream_.get()), F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return failed();
  return MappedFile::map_descriptor(descriptor, path_);
}

Result<> AtomicFile::commit() {
  const bool closed = std::fclose(stream_.release()) == 0;
  if (closed && std::rename(temporary_.c_str(), path_.c_str()) == 0) return {};
  tl::unexpected<Error> error = failed();
  std::remove(temporary_.c_str());
  return error;
}

Result<> write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  LATHE_ASSIGN(AtomicFile file, AtomicFile::create(path));
  LATHE_TRY(file.write(bytes));
  return file.commit();
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
