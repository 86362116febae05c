// SPDX-License-Identifier: Apache-2.0
// A lock that processes share, of whatever language: flock(2) on a file of its own.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace lathe {

class FileLock {
 public:
  enum class Kind { shared, exclusive };

  // Of the file at `path`, which is made where it is missing and never removed. Fails with file_read where it cannot be
  // made, and with invalid_state where others hold the lock for longer than `patience`.
  static Result<FileLock> take(const std::string& path, Kind kind, std::chrono::milliseconds patience);

  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace lathe
