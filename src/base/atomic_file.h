// SPDX-License-Identifier: Apache-2.0
// Files that are written as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "base/result.h"

namespace lathe {

// Written under a temporary name beside `path`, and renamed when it is complete, so that readers see the old file or
// the new, never a part. What is not committed is removed.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&&) = default;
  ~AtomicFile();
  // Where there is a file to replace, takes room for so many bytes on the disk if its file system can do that. ext4
  // finds places for what was written at latest when it replaces another file, and renaming waits for that: 1.4 s for
  // 3 GB.
  Result<> reserve(uint64_t bytes);
  Result<> write(std::span<const std::byte> bytes);
  // What was written, as long as the mapping is kept, whatever becomes of the file.
  Result<std::shared_ptr<const MappedFile>> map();
  // All that can fail is done before the file is renamed.
  Result<> commit();

 private:
  using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  AtomicFile(std::string path, std::string temporary) : path_(std::move(path)), temporary_(std::move(temporary)) {}
  tl::unexpected<Error> failed() const;

  std::string path_, temporary_;
  Stream stream_{nullptr, std::fclose};  // null = there is no file: it was committed, or moved from
};

Result<> write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
// Removes the temporary files that such writers of `path` left when they were killed. Nobody may be writing it.
void remove_leftovers(const std::string& path);

}  // namespace lathe
