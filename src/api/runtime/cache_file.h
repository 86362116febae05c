// SPDX-License-Identifier: Apache-2.0
// Kernels that were compiled at run time, in a file that processes share: docs/runtime_cache.md.
#pragma once

#include <mutex>
#include <string>

#include "base/log.h"
#include "device/kernel_cache.h"

namespace lathe::api {

// Adds the file's kernels to the cache; gives the bytes of the file. Fails with file_not_found where there is none, and
// with what is wrong with it or its lock.
Result<size_t> load_kernels(KernelCache& cache, const std::string& path);

// Writes the cache's kernels into the file, with those that are there already; gives its bytes, 0 where the cache is
// empty and nothing is written. The file is as it was where that fails.
Result<size_t> save_kernels(const KernelCache& cache, const std::string& path);

// The cache of an engine whose runtime names a file. What goes wrong with the file is a warning. Thread-safe.
class CacheFile {
 public:
  CacheFile(std::string path, std::string environment, size_t limit)
      : path_(std::move(path)), kernels_(std::move(environment), limit) {}

  KernelCache& kernels() { return kernels_; }
  void load(Log& log);
  void save(Log& log) noexcept;  // where something was compiled since the last time

 private:
  const std::string path_;
  KernelCache kernels_;
  std::mutex mutex_;
  uint64_t saved_ = 0;  // KernelCache::Counts::changes
};

}  // namespace lathe::api
