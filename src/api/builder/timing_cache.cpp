// SPDX-License-Identifier: Apache-2.0
#include "api/builder/timing_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "api/host_memory.h"
#include "base/tactic_value.h"

namespace lathe::api {
namespace {

using Key = lathe::TimingCache::Key;

Key to_key(const nv::TimingCacheKey& key) {
  Key result;
  std::memcpy(&result.high, key.data, sizeof(result.high));
  std::memcpy(&result.low, key.data + sizeof(result.high), sizeof(result.low));
  return result;
}

nv::TimingCacheKey to_nv(const Key& key) {
  nv::TimingCacheKey result;
  std::memcpy(result.data, &key.high, sizeof(key.high));
  std::memcpy(result.data + sizeof(key.high), &key.low, sizeof(key.low));
  return result;
}

using Timed = lathe::TimingCache::Timed;

uint64_t tactic_hash(const Timed& timed) {
  return tactic_value(timed.config.empty() ? timed.tactic : timed.tactic + ": " + timed.config);
}

}  // namespace

nv::IHostMemory* TimingCache::serialize() const noexcept {
  return guarded(*reporter_, "ITimingCache::serialize", static_cast<nv::IHostMemory*>(nullptr),
                 [&]() -> Result<nv::IHostMemory*> { return new HostMemory(entries_.serialize()); });
}

// Keys cover device and version, so that no entry of another machine can be mistaken for one of this.
bool TimingCache::combine(const nv::ITimingCache& inputCache, bool) noexcept {
  return guarded(*reporter_, "ITimingCache::combine", [&]() -> Result<> {
    const auto& other = static_cast<const TimingCache&>(inputCache);
    if (&other != this) entries_.merge(other.entries_);
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
    const std::vector<Key> keys = entries_.keys();
    for (size_t i = 0; i < keys.size() && i < static_cast<size_t>(capacity); ++i) keyBuffer[i] = to_nv(keys[i]);
    return static_cast<int64_t>(keys.size());
  });
}

nv::TimingCacheValue TimingCache::query(const nv::TimingCacheKey& key) const noexcept {
  constexpr nv::TimingCacheValue kNone{nv::TimingCacheValue::kINVALID_TACTIC_HASH, NAN};
  return guarded(*reporter_, "ITimingCache::query", kNone, [&]() -> Result<nv::TimingCacheValue> {
    const auto entry = entries_.find(to_key(key));
    if (!entry) return kNone;
    return nv::TimingCacheValue{tactic_hash(entry->chosen), entry->chosen.microseconds / 1000};
  });
}

// A tactic cannot be told from its hash: one is chosen from those that a build has kept with the entry.
bool TimingCache::update(const nv::TimingCacheKey& key, const nv::TimingCacheValue& value) noexcept {
  return guarded(*reporter_, "ITimingCache::update", [&]() -> Result<> {
    auto entry = entries_.find(to_key(key));
    if (!entry) return fail(ErrorCode::invalid_argument, "the cache has no entry with this key");
    if (!(value.timingMSec >= 0) || std::isinf(value.timingMSec))
      return fail(ErrorCode::invalid_argument, "{} milliseconds are no time", value.timingMSec);
    entry->candidates.push_back(entry->chosen);
    const auto it = std::ranges::find(entry->candidates, value.tacticHash, tactic_hash);
    if (it == entry->candidates.end())
      return fail(ErrorCode::invalid_argument,
                  "{:#018x} is none of the entry's {} tactics: a build with BuilderFlag::kEDITABLE_TIMING_CACHE keeps "
                  "all that it measures, and logs their hashes at INFO",
                  value.tacticHash, entry->candidates.size() - 1);
    it->microseconds = value.timingMSec * 1000;
    entries_.choose(to_key(key), *it);
    return {};
  });
}

}  // namespace lathe::api
