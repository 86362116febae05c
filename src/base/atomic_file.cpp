// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/folder.h"

namespace lathe {
namespace {

constexpr std::string_view kTemporary = ".tmp";

}  // namespace

Result<> write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  static std::atomic<unsigned> writes = 0;  // threads may write the same file
  const std::string temporary = fmt::format("{}.{}.{}{}", path, ::getpid(), ++writes, kTemporary);
  std::FILE* file = std::fopen(temporary.c_str(), "wbe");
  if (!file)
    return fail(ErrorCode::file_read, "cannot create '{}': {}", temporary, std::generic_category().message(errno));
  const bool written = bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const std::string reason = std::generic_category().message(errno);
  std::remove(temporary.c_str());
  return fail(ErrorCode::file_read, "cannot write '{}': {}", path, reason);
}

void remove_leftovers(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).parent_path();
  const std::string start = fs::path(path).filename().string() + ".";
  for (const fs::path& entry : entries_of(folder.empty() ? "." : folder)) {
    const std::string name = entry.filename().string();
    if (!name.starts_with(start) || !name.ends_with(kTemporary) || name.size() < start.size() + kTemporary.size())
      continue;
    const std::string_view numbers(name.data() + start.size(), name.size() - start.size() - kTemporary.size());
    std::error_code ignored;  // it is in nobody's way
    if (numbers.find_first_not_of("0123456789.") == std::string_view::npos) fs::remove(entry, ignored);
  }
}

}  // namespace lathe
