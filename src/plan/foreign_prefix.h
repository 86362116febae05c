// SPDX-License-Identifier: Apache-2.0
// JSON that other tools put in front of an engine file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace lathe::plan {

// Bytes before the plan: 0 when the plan starts at once or when there is no JSON object to skip.
size_t foreign_prefix_bytes(std::span<const std::byte> bytes);

// The same for a file that comes piece by piece.
class ForeignPrefix {
 public:
  // `bytes` are the file's first, more of them in each call. Nullopt while they do not tell.
  std::optional<size_t> find(std::span<const std::byte> bytes);

 private:
  std::optional<size_t> find_object(std::span<const std::byte> bytes, size_t start);

  // How far the object has been read, and what is open there.
  size_t read_ = 0, depth_ = 0;
  bool in_string_ = false;
};

}  // namespace lathe::plan
