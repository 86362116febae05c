// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace lathe {

// Of a folder; none where there is no folder, or it cannot be read. Throws bad_alloc only. (The standard library's
// iterators end a program that has no memory for them.)
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), &::closedir);
  std::vector<std::filesystem::path> entries;
  while (const dirent* entry = opened ? ::readdir(opened.get()) : nullptr)
    if (const std::string_view name = entry->d_name; name != "." && name != "..") entries.push_back(folder / name);
  return entries;
}

}  // namespace lathe
