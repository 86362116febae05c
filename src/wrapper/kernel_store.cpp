// SPDX-License-Identifier: Apache-2.0
#include "wrapper/kernel_store.h"

namespace lathe::wrapper {
namespace {

namespace fs = std::filesystem;

constexpr auto kPatience = std::chrono::seconds(10);

std::string lock_of(const std::string& path) { return path + ".lock"; }

}  // namespace

Result<std::shared_ptr<const MappedFile>> read_store(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return fail(ErrorCode::file_not_found, "there is no runtime cache '{}' yet", path);
  const Result<FileLock> lock = FileLock::take(lock_of(path), FileLock::Kind::shared, kPatience);
  // In a folder that cannot be written nobody else writes the file either.
  if (!lock && lock.error().code == ErrorCode::invalid_state) return fail(lock.error());
  return MappedFile::open(path);
}

Result<FileLock> lock_store(const std::string& path) {
  std::error_code ignored;  // the lock file tells
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder, ignored);
  LATHE_ASSIGN(FileLock lock, FileLock::take(lock_of(path), FileLock::Kind::exclusive, kPatience));
  remove_leftovers(path);
  return lock;
}

}  // namespace lathe::wrapper
