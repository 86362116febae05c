// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cubin_cache.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file.h"

namespace lathe::cuda {
namespace {

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

}  // namespace

std::string default_cache_folder() {
  if (const char* folder = std::getenv("LATHE_CACHE_DIR")) return folder;
  const std::string cache = in_home("XDG_CACHE_HOME", "/lathe");
  return cache.empty() ? in_home("HOME", "/.cache/lathe") : cache;
}

std::string CubinCache::path(const Digest& key) const {
  std::string name;
  for (const std::byte byte : key) name += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return fmt::format("{}/cubin/{}/{}", folder_, name.substr(0, 2), name.substr(2));
}

std::optional<std::vector<std::byte>> CubinCache::find(const Digest& key) const {
  if (folder_.empty()) return std::nullopt;
  // Read, not mapped: another process may replace the file at any time.
  std::FILE* file = std::fopen(path(key).c_str(), "rbe");
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
  return content;
}

void CubinCache::store(const Digest& key, std::span<const std::byte> code) const {
  if (folder_.empty()) return;
  const std::string file = path(key);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
  const std::span<const std::byte> magic = std::as_bytes(std::span(kMagic));
  const Digest seal = seal_of(key, code);
  std::vector<std::byte> content(magic.begin(), magic.end());
  content.insert(content.end(), seal.begin(), seal.end());
  content.insert(content.end(), code.begin(), code.end());
  (void)write_file_atomically(file, content);  // the next build compiles again
}

}  // namespace lathe::cuda
