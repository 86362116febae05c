// SPDX-License-Identifier: Apache-2.0
// A shared object in memory, made loadable by dlopen().
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace lathe::api::guest {

// How such a library may be mapped.
struct ImagePolicy {
  bool in_memory = true;        // from a file in memory alone
  bool temporary_files = true;  // where the kernel has none
  std::string directory;        // of temporary files; "" = what the environment says
};

// Where temporary files go unless told otherwise: $TMPDIR, else /tmp.
std::string default_directory();
// Whether files can be made there.
Result<> check_directory(const std::string& path);

class PrivateFile {
 public:
  // An empty one. `what` names the content in messages.
  static Result<std::unique_ptr<PrivateFile>> make(const ImagePolicy& policy, std::string what);
  // The next part of the content.
  Result<> add(std::span<const std::byte> part);
  ~PrivateFile();
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  // By which the loader opens it. As long as it knows the library by this name, the file must be kept.
  const std::string& path() const { return path_; }
  // Once the library is mapped: takes a temporary file out of its folder.
  void hide();

 private:
  explicit PrivateFile(std::string what) : what_(std::move(what)) {}
  bool open_in_memory();
  Result<> open_in_folder(const std::string& folder);
  Result<> open(const ImagePolicy& policy);

  std::string what_;
  int descriptor_ = -1;
  std::string path_;
  bool is_linked_ = false;  // in a folder
};

}  // namespace lathe::api::guest
