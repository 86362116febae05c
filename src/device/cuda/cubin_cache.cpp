// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cubin_cache.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/folder.h"
#include "base/hex.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFolders = 256;  // by the first byte of keys, which are spread evenly
constexpr size_t kDefaultLimit = 1024;
constexpr auto kUseIsNoted = std::chrono::hours(1);  // at the most once in that time

constexpr std::string_view kMagic = "LATHECC1";

// magic, digest of the key and the code, code
constexpr size_t kHeader = kMagic.size() + sizeof(Digest);

Digest seal_of(const Digest& key, std::span<const std::byte> code) {
  std::vector<std::byte> sealed(key.begin(), key.end());
  sealed.insert(sealed.end(), code.begin(), code.end());
  return digest_of(sealed);
}

std::string in_home(const char* variable, const char* below) {
  const char* value = std::getenv(variable);
  return value && *value ? std::string(value) + below : "";
}

void note_use(const std::string& file) {
  std::error_code error;
  const auto now = fs::file_time_type::clock::now(), last = fs::last_write_time(file, error);
  if (!error && now - last > kUseIsNoted) fs::last_write_time(file, now, error);
}

}  // namespace

size_t default_cache_limit() {
  size_t limit = kDefaultLimit;
  if (const char* given = std::getenv("LATHE_CACHE_LIMIT")) {
    size_t value = 0;
    const char* end = given + std::strlen(given);
    const auto [rest, problem] = std::from_chars(given, end, value);
    if (problem == std::errc() && rest == end && value <= SIZE_MAX >> 20) limit = value;
  }
  return limit << 20;
}

std::string default_cache_folder() {
  if (const char* folder = std::getenv("LATHE_CACHE_DIR")) return folder;
  const std::string cache = in_home("XDG_CACHE_HOME", "/lathe");
  return cache.empty() ? in_home("HOME", "/.cache/lathe") : cache;
}

std::string CubinCache::path(const Digest& key) const {
  const std::string name = to_hex(key);
  return fmt::format("{}/cubin/{}/{}", folder_, name.substr(0, 2), name.substr(2));
}

std::optional<std::vector<std::byte>> CubinCache::find(const Digest& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::string name = path(key);
  // Read, not mapped: another process may replace the file at any time.
  std::FILE* file = std::fopen(name.c_str(), "rbe");
  if (!file) return std::nullopt;
  std::vector<std::byte> content;
  std::byte block[1 << 16];
  for (size_t read; (read = std::fread(block, 1, sizeof(block), file)) > 0;)
    content.insert(content.end(), block, block + read);
  std::fclose(file);
  if (content.size() <= kHeader || std::memcmp(content.data(), kMagic.data(), kMagic.size()) != 0) return std::nullopt;
  const Digest seal = seal_of(key, std::span(content).subspan(kHeader));
  if (std::memcmp(content.data() + kMagic.size(), seal.data(), seal.size()) != 0) return std::nullopt;
  content.erase(content.begin(), content.begin() + kHeader);
  note_use(name);
  return content;
}

void CubinCache::store(const Digest& key, std::span<const std::byte> code) const {
  if (folder_.empty()) return;
  const std::string file = path(key), folder = fs::path(file).parent_path();
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const std::span<const std::byte> magic = std::as_bytes(std::span(kMagic));
  const Digest seal = seal_of(key, code);
  std::vector<std::byte> content(magic.begin(), magic.end());
  content.insert(content.end(), seal.begin(), seal.end());
  content.insert(content.end(), code.begin(), code.end());
  (void)write_file_atomically(file, content);  // the next build compiles again
  make_room(folder);
}

// Each folder has an equal share of the limit. To a quarter below it, so that not every store has to.
void CubinCache::make_room(const std::string& folder) const {
  struct Entry {
    fs::path path;
    size_t bytes;
    fs::file_time_type used;
  };
  std::vector<Entry> entries;
  size_t total = 0;
  for (const fs::path& path : entries_of(folder)) {
    std::error_code is_gone, has_gone;  // others clear up, too
    const size_t bytes = fs::file_size(path, is_gone);
    const fs::file_time_type used = fs::last_write_time(path, has_gone);
    if (is_gone || has_gone) continue;
    entries.push_back({path, bytes, used});
    total += bytes;
  }
  const size_t share = limit_ / kFolders;
  if (total <= share) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= share - share / 4) return;
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.bytes;
  }
}

}  // namespace lathe::cuda
