// SPDX-License-Identifier: Apache-2.0
// Compiled device code on disk, one file per content. Many processes and threads may use one folder at a time; what is
// damaged is as good as missing. An unwritable folder costs time only, so nothing here fails.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace lathe::cuda {

// LATHE_CACHE_DIR (empty: none), else $XDG_CACHE_HOME/lathe, else ~/.cache/lathe; "" where there is none of these.
std::string default_cache_folder();

class CubinCache {
 public:
  explicit CubinCache(std::string folder) : folder_(std::move(folder)) {}  // "": keeps nothing

  std::optional<std::vector<std::byte>> find(const Digest& key) const;
  void store(const Digest& key, std::span<const std::byte> code) const;
  std::string path(const Digest& key) const;

 private:
  std::string folder_;
};

}  // namespace lathe::cuda
