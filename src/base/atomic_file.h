// SPDX-License-Identifier: Apache-2.0
// Files that are written as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace lathe {

// Written under a temporary name beside `path`, and renamed when it is complete, so that readers see the old file or
// the new, never a part. What is not committed is removed.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&&) = default;
  ~AtomicFile();
  // Where there is a file to replace, takes room for so many bytes on the disk if its file system can do that: renaming
  // would wait for the system to find places for what was written, 1.4 s for 3 GB on ext4.
  Result<> reserve(uint64_t bytes);
  Result<> write(std::span<const std::byte> bytes);
  Result<> commit();

 private:
  using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  AtomicFile(const std::string& path, std::string temporary, Stream stream)
      : path_(path), temporary_(std::move(temporary)), stream_(std::move(stream)) {}
  tl::unexpected<Error> failed() const;

  std::string path_, temporary_;
  Stream stream_;  // null = it was committed, or moved from
};

Result<> write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
// Removes the temporary files that such writers of `path` left when they were killed. Nobody may be writing it.
void remove_leftovers(const std::string& path);

}  // namespace lathe
