// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened at run time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace lathe::cuda {

// Stays loaded until the process ends: drivers do not survive being unloaded.
class SharedLibrary {
 public:
  // The first of `names` that opens; one that is loaded already comes before all others. Fails with what each said.
  static Result<SharedLibrary> open(std::span<const std::string> names, ErrorCode code);

  // The path of the first of `names` that is loaded in this process, by whoever did that.
  static std::optional<std::string> find_loaded(std::span<const std::string> names);

  void* symbol(const char* name) const;  // null where the library lacks it
  const std::string& path() const { return path_; }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* handle_;
  std::string path_;
};

// Where a library of the CUDA toolkit is looked for: the path that the environment variable gives, or else `files` as
// the system finds them, then in CUDA_HOME, CUDA_PATH and /usr/local/cuda.
std::vector<std::string> toolkit_names(const char* variable, const std::vector<std::string>& files);

}  // namespace lathe::cuda
