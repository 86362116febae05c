// SPDX-License-Identifier: Apache-2.0
// Files that are written as a whole.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace lathe {

// Writes to a temporary name beside `path` and renames it, so that readers see the old file or the new, never a part.
Result<> write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
// Removes the temporary files that such writers of `path` left when they were killed. Nobody may be writing it.
void remove_leftovers(const std::string& path);

}  // namespace lathe
