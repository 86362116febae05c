// SPDX-License-Identifier: Apache-2.0
// Read-only mappings of files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace lathe {

// A read-only private mapping of a whole file (page-aligned; empty files map to an empty span). Shared by everything
// that points into it: keep the shared_ptr. The file must not be truncated while mapped.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  // Takes ownership of an open descriptor; `path` is for messages only.
  static Result<std::shared_ptr<const MappedFile>> map_descriptor(int descriptor, const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Gives back the memory that its pages take by now. They stay readable, and are then fetched anew.
  void forget_pages() const;

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace lathe
