// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace lathe::cli {

// A file in memory, without reading what is not looked at.
class FileView {
 public:
  explicit FileView(const std::string& path);  // throws Failure, also where it is empty
  ~FileView();
  FileView(const FileView&) = delete;
  FileView& operator=(const FileView&) = delete;
  const void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* data_;
  size_t size_ = 0;
};

}  // namespace lathe::cli
