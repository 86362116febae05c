// SPDX-License-Identifier: Apache-2.0
// Compiled device code on disk, one file per content. Many processes and threads may use one folder at a time; what is
// damaged is as good as missing. An unwritable folder costs time only, so nothing here fails. What was not used for
// longest goes when the folder has become too large.
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

// LATHE_CACHE_LIMIT in MiB, 1024 unless that is a number.
size_t default_cache_limit();

class CubinCache {
 public:
  explicit CubinCache(std::string folder, size_t limit = default_cache_limit())  // "": keeps nothing
      : folder_(std::move(folder)), limit_(limit) {}

  std::optional<std::vector<std::byte>> find(const Digest& key) const;
  void store(const Digest& key, std::span<const std::byte> code) const;
  std::string path(const Digest& key) const;

 private:
  void make_room(const std::string& folder) const;

  std::string folder_;
  size_t limit_;  // bytes
};

}  // namespace lathe::cuda
