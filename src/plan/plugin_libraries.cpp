// SPDX-License-Identifier: Apache-2.0
#include "plan/plugin_libraries.h"

#include "base/deflate.h"
#include "base/inflate.h"
#include "plan/limits.h"

namespace lathe::plan {
namespace {

constexpr size_t kMostLibraries = 64;
constexpr size_t kSizeBytes = 8;

void put_size(std::vector<std::byte>& bytes, uint64_t size) {
  for (size_t i = 0; i < kSizeBytes; ++i) bytes.push_back(static_cast<std::byte>(size >> (8 * i)));
}

void put_bytes(std::vector<std::byte>& bytes, std::span<const std::byte> content) {
  put_size(bytes, content.size());
  bytes.insert(bytes.end(), content.begin(), content.end());
}

// Takes what put_size() and put_bytes() wrote off the front.
Result<uint64_t> take_size(std::span<const std::byte>& bytes) {
  if (bytes.size() < kSizeBytes) return fail(ErrorCode::plan_malformed, "the plan's plugin libraries are cut off");
  uint64_t size = 0;
  for (size_t i = 0; i < kSizeBytes; ++i) size |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  bytes = bytes.subspan(kSizeBytes);
  return size;
}

Result<std::span<const std::byte>> take_bytes(std::span<const std::byte>& bytes) {
  LATHE_ASSIGN(const uint64_t size, take_size(bytes));
  if (size > bytes.size()) return fail(ErrorCode::plan_malformed, "the plan's plugin libraries are cut off");
  const auto taken = bytes.first(size);
  bytes = bytes.subspan(size);
  return taken;
}

}  // namespace

Result<std::vector<std::byte>> pack_plugin_libraries(std::span<const PluginLibrary> libraries) {
  if (libraries.size() > kMostLibraries)
    return fail(ErrorCode::invalid_argument, "{} plugin libraries for a plan; at most {}", libraries.size(),
                kMostLibraries);
  std::vector<std::byte> section;
  put_size(section, libraries.size());
  for (const PluginLibrary& library : libraries) {
    if (library.content.size() > kMaxHostCode)
      return fail(ErrorCode::invalid_argument, "plugin library '{}' has {} bytes; a plan holds at most {} of one",
                  library.name, library.content.size(), kMaxHostCode);
    LATHE_ASSIGN(const std::vector<std::byte> compressed, deflate_bytes(library.content));
    put_bytes(section, std::as_bytes(std::span(library.name)));
    put_bytes(section, compressed);
  }
  return section;
}

Result<std::vector<PluginLibrary>> unpack_plugin_libraries(std::span<const std::byte> section) {
  LATHE_ASSIGN(const uint64_t count, take_size(section));
  if (count > kMostLibraries)
    return fail(ErrorCode::plan_malformed, "the plan claims {} plugin libraries; at most {}", count, kMostLibraries);
  std::vector<PluginLibrary> libraries(count);
  for (PluginLibrary& library : libraries) {
    LATHE_ASSIGN(const auto name, take_bytes(section));
    library.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    LATHE_ASSIGN(const auto compressed, take_bytes(section));
    LATHE_ASSIGN(library.content, inflate_bytes(compressed, kMaxHostCode));
  }
  if (!section.empty()) return fail(ErrorCode::plan_malformed, "bytes follow the plan's plugin libraries");
  return libraries;
}

}  // namespace lathe::plan
