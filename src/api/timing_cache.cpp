// SPDX-License-Identifier: Apache-2.0
#include "api/timing_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "api/host_memory.h"
#include "base/hash.h"

namespace lathe::api {
namespace {

// File: magic, version, number of entries, entries, checksum of all before it. Little-endian, as the machine.
constexpr uint64_t kMagic = 0x3165686361437654ull;  // "TvCache1"
struct Header {
  uint64_t magic;
  uint64_t entries;
};
struct Entry {
  uint8_t key[16];
  uint64_t tactic;
  float milliseconds;
  uint32_t reserved;
};
static_assert(sizeof(Entry) == 32);

void append(std::vector<std::byte>& bytes, const void* data, size_t size) {
  const auto* begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

uint64_t checksum(std::span<const std::byte> bytes) { return Hasher().add(bytes).value(); }

}  // namespace

TimingCache::Key TimingCache::to_key(const nv::TimingCacheKey& key) {
  Key result;
  std::copy(std::begin(key.data), std::end(key.data), result.begin());
  return result;
}

Result<> TimingCache::read(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  Header header;
  uint64_t sum = 0;
  const size_t frame = sizeof(header) + sizeof(sum);
  if (bytes.size() < frame)
    return fail(ErrorCode::timing_cache_invalid, "timing cache of {} bytes is cut", bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic)
    return fail(ErrorCode::timing_cache_invalid,
                "timing cache was written by another version or program; make a new one");
  if (header.entries != (bytes.size() - frame) / sizeof(Entry) || (bytes.size() - frame) % sizeof(Entry) != 0)
    return fail(ErrorCode::timing_cache_invalid, "timing cache is cut: {} entries expected", header.entries);
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof(sum), sizeof(sum));
  if (sum != checksum(bytes.first(bytes.size() - sizeof(sum))))
    return fail(ErrorCode::timing_cache_invalid, "timing cache is damaged: its checksum does not match");
  for (uint64_t i = 0; i < header.entries; ++i) {
    Entry entry;
    std::memcpy(&entry, bytes.data() + sizeof(header) + i * sizeof(entry), sizeof(entry));
    Key key;
    std::copy(std::begin(entry.key), std::end(entry.key), key.begin());
    entries_[key] = {entry.tactic, entry.milliseconds};
  }
  return {};
}

nv::IHostMemory* TimingCache::serialize() const noexcept {
  return guarded(*reporter_, "ITimingCache::serialize", static_cast<nv::IHostMemory*>(nullptr),
                 [&]() -> Result<nv::IHostMemory*> {
                   std::vector<std::byte> bytes;
                   const Header header{kMagic, entries_.size()};
                   append(bytes, &header, sizeof(header));
                   for (const auto& [key, value] : entries_) {
                     Entry entry{{}, value.tacticHash, value.timingMSec, 0};
                     std::copy(key.begin(), key.end(), std::begin(entry.key));
                     append(bytes, &entry, sizeof(entry));
                   }
                   const uint64_t sum = checksum(bytes);
                   append(bytes, &sum, sizeof(sum));
                   return new HostMemory(std::move(bytes));
                 });
}

bool TimingCache::combine(const nv::ITimingCache& inputCache, bool) noexcept {
  return guarded(*reporter_, "ITimingCache::combine", [&]() -> Result<> {
    const auto& other = static_cast<const TimingCache&>(inputCache);
    if (&other != this) entries_.insert(other.entries_.begin(), other.entries_.end());
    return {};
  });
}

bool TimingCache::reset() noexcept {
  entries_.clear();
  return true;
}

int64_t TimingCache::queryKeys(nv::TimingCacheKey* keyBuffer, int64_t capacity) const noexcept {
  return guarded(*reporter_, "ITimingCache::queryKeys", int64_t{-1}, [&]() -> Result<int64_t> {
    if (capacity < 0 || (capacity > 0 && !keyBuffer))
      return fail(ErrorCode::invalid_argument, "key buffer is null, or capacity {} is negative", capacity);
    int64_t filled = 0;
    for (const auto& [key, value] : entries_) {
      if (filled == capacity) break;
      std::copy(key.begin(), key.end(), keyBuffer[filled++].data);
    }
    return static_cast<int64_t>(entries_.size());
  });
}

nv::TimingCacheValue TimingCache::query(const nv::TimingCacheKey& key) const noexcept {
  const auto it = entries_.find(to_key(key));
  if (it == entries_.end()) return {nv::TimingCacheValue::kINVALID_TACTIC_HASH, std::nanf("")};
  return it->second;
}

bool TimingCache::update(const nv::TimingCacheKey& key, const nv::TimingCacheValue& value) noexcept {
  return guarded(*reporter_, "ITimingCache::update", [&]() -> Result<> {
    const auto it = entries_.find(to_key(key));
    if (it == entries_.end()) return fail(ErrorCode::invalid_argument, "the cache has no entry with this key");
    if (value.tacticHash == nv::TimingCacheValue::kINVALID_TACTIC_HASH)
      entries_.erase(it);
    else
      it->second = value;
    return {};
  });
}

}  // namespace lathe::api
