// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "NvInfer.h"
#include "api/report.h"

namespace lathe::api {

// Measured times by problem key.
class TimingCache final : public nv::ITimingCache, public nv::apiv::VTimingCache {
 public:
  explicit TimingCache(std::shared_ptr<const Reporter> reporter) : reporter_(std::move(reporter)) { mImpl = this; }
  ~TimingCache() noexcept override = default;

  Result<> read(std::span<const std::byte> bytes);  // empty bytes: an empty cache

  nv::IHostMemory* serialize() const noexcept override;
  bool combine(const nv::ITimingCache& inputCache, bool ignoreMismatch) noexcept override;
  bool reset() noexcept override;
  int64_t queryKeys(nv::TimingCacheKey* keyBuffer, int64_t capacity) const noexcept override;
  nv::TimingCacheValue query(const nv::TimingCacheKey& key) const noexcept override;
  bool update(const nv::TimingCacheKey& key, const nv::TimingCacheValue& value) noexcept override;

 private:
  using Key = std::array<uint8_t, sizeof(nv::TimingCacheKey)>;
  static Key to_key(const nv::TimingCacheKey& key);

  std::shared_ptr<const Reporter> reporter_;
  std::map<Key, nv::TimingCacheValue> entries_;
};

}  // namespace lathe::api
