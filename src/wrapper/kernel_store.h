// SPDX-License-Identifier: Apache-2.0
// The runtime cache of one engine, in a file that processes share (docs/runtime_cache.md). What goes wrong with the
// file is a warning.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/atomic_file.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/hash.h"
#include "base/log.h"

namespace lathe::wrapper {

// The file's bytes, read under its lock. file_not_found where there is none yet.
Result<std::shared_ptr<const MappedFile>> read_store(const std::string& path);

// The lock to write under, for which folders are made that are missing; what writers have left that were killed is
// removed.
Result<FileLock> lock_store(const std::string& path);

// Config: IRuntimeConfig, or what stands for it in tests.
template <class Config>
class KernelStore {
 public:
  using Cache = std::remove_pointer_t<decltype(std::declval<Config&>().createRuntimeCache())>;

  // False where there is no cache: no path, or the engine gives none.
  bool open(const std::string& path, Config& config, Log& log) {
    if (path.empty() || cache_) return cache_ != nullptr;
    cache_.reset(config.createRuntimeCache());
    if (!cache_) return false;
    path_ = path;
    const Result<size_t> bytes = load(*cache_);
    if (bytes) {
      log.print(Severity::info, "runtime cache '{}' is loaded: {} bytes", path_, *bytes);
    } else {
      const bool is_new = bytes.error().code == ErrorCode::file_not_found;
      log.print(is_new ? Severity::verbose : Severity::warning, "the runtime cache is empty at first: {}",
                bytes.error().to_string());
    }
    saved_ = digest_of_cache();
    return true;
  }

  void save(Config& config, Log& log) noexcept {
    try {
      if (!cache_) return;
      const Digest now = digest_of_cache();
      if (now == saved_) return;
      const Result<size_t> bytes = write(config);
      saved_ = now;
      if (bytes) {
        log.print(Severity::info, "runtime cache '{}' is saved: {} bytes", path_, *bytes);
      } else {
        log.print(Severity::warning, "the runtime cache is not saved: {}", bytes.error().to_string());
      }
    } catch (...) {
      log.write(Severity::warning, "the runtime cache is not saved: there is no memory left");
    }
  }

  Cache* cache() const { return cache_.get(); }

 private:
  static std::string bytes_of(const Cache& cache) {
    const std::unique_ptr<std::remove_pointer_t<decltype(cache.serialize())>> bytes(cache.serialize());
    return bytes ? std::string(static_cast<const char*>(bytes->data()), bytes->size()) : std::string();
  }

  Digest digest_of_cache() const {
    const std::string bytes = bytes_of(*cache_);
    return digest_of(std::as_bytes(std::span(bytes)));
  }

  Result<size_t> load(Cache& cache) const {
    LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, read_store(path_));
    const std::span<const std::byte> bytes = file->bytes();
    if (cache.deserialize(bytes.data(), bytes.size())) return bytes.size();
    return fail(ErrorCode::file_read,
                "'{}' holds no kernels for this machine and version; it will be written anew, unless it is moved away",
                path_);
  }

  // With the kernels that others have saved meanwhile; a file that is of no use is replaced.
  Result<size_t> write(Config& config) const {
    LATHE_ASSIGN(const FileLock lock, lock_store(path_));
    const std::unique_ptr<Cache> all(config.createRuntimeCache());
    if (!all) return fail(ErrorCode::out_of_memory, "there is no second cache to merge the file with");
    if (const Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(path_))
      (void)all->deserialize((*file)->bytes().data(), (*file)->bytes().size());
    const std::string own = bytes_of(*cache_);
    if (!all->deserialize(own.data(), own.size()))
      return fail(ErrorCode::internal, "the cache does not read what it has written");
    const std::string bytes = bytes_of(*all);
    LATHE_TRY(write_file_atomically(path_, std::as_bytes(std::span(bytes))));
    return bytes.size();
  }

  std::string path_;
  std::unique_ptr<Cache> cache_;
  Digest saved_{};  // of what the file had from here
};

}  // namespace lathe::wrapper
