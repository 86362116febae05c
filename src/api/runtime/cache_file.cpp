// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/cache_file.h"

#include <filesystem>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/file_lock.h"

namespace lathe::api {
namespace {

namespace fs = std::filesystem;

constexpr auto kPatience = std::chrono::seconds(10);

std::string lock_of(const std::string& path) { return path + ".lock"; }

Result<size_t> merge_file(KernelCache& cache, const std::string& path) {
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Result<> merged = cache.merge(file->bytes());
  if (!merged) return fail(with_context(std::move(merged).error(), fmt::format("'{}'", path)));
  return file->bytes().size();
}

}  // namespace

Result<size_t> load_kernels(KernelCache& cache, const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return fail(ErrorCode::file_not_found, "there is no runtime cache '{}' yet", path);
  const Result<FileLock> lock = FileLock::take(lock_of(path), FileLock::Kind::shared, kPatience);
  // In a folder that cannot be written nobody else writes the file either.
  if (!lock && lock.error().code == ErrorCode::invalid_state) return fail(lock.error());
  return merge_file(cache, path);
}

Result<size_t> save_kernels(const KernelCache& cache, const std::string& path) {
  if (!fs::path(path).has_filename())
    return fail(ErrorCode::invalid_argument, "a runtime cache cannot be saved in '{}', which names no file", path);
  const KernelCache::Counts counts = cache.counts();
  if (counts.kernels == 0) return size_t{0};
  std::error_code ignored;  // the lock file tells
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder, ignored);
  LATHE_ASSIGN(const FileLock lock, FileLock::take(lock_of(path), FileLock::Kind::exclusive, kPatience));
  remove_leftovers(path);
  KernelCache all(cache.environment(), counts.limit);
  (void)merge_file(all, path);  // what cannot be used any more is replaced
  LATHE_TRY(all.merge(cache.serialize()));
  const std::vector<std::byte> bytes = all.serialize();
  LATHE_TRY(write_file_atomically(path, bytes));
  return bytes.size();
}

void CacheFile::load(Log& log) {
  const Result<size_t> bytes = load_kernels(kernels_, path_);
  if (bytes) {
    log.print(Severity::info, "runtime cache '{}' is loaded: {} kernels, {} bytes", path_, kernels_.counts().kernels,
              *bytes);
  } else {
    const bool is_new = bytes.error().code == ErrorCode::file_not_found;
    log.print(is_new ? Severity::verbose : Severity::warning, "the runtime cache is empty at first: {}",
              bytes.error().to_string());
  }
}

void CacheFile::save(Log& log) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    const KernelCache::Counts counts = kernels_.counts();
    if (counts.changes == saved_) return;
    const Result<size_t> bytes = save_kernels(kernels_, path_);
    saved_ = counts.changes;
    if (bytes) {
      log.print(Severity::info, "runtime cache '{}' is saved: {} kernels compiled, {} found, {} bytes", path_,
                counts.compiled, counts.hits, *bytes);
    } else {
      log.print(Severity::warning, "the runtime cache is not saved: {}", bytes.error().to_string());
    }
  } catch (...) {
    log.write(Severity::warning, "the runtime cache is not saved: there is no memory left");
  }
}

}  // namespace lathe::api
