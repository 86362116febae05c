// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "NvInfer.h"
#include "api/report.h"
#include "tuning/timing_cache.h"

namespace lathe::api {

class TimingCache final : public nv::ITimingCache, public nv::apiv::VTimingCache {
 public:
  explicit TimingCache(std::shared_ptr<const Reporter> reporter) : reporter_(std::move(reporter)) { mImpl = this; }
  ~TimingCache() noexcept override = default;

  lathe::TimingCache& entries() { return entries_; }

  nv::IHostMemory* serialize() const noexcept override;
  bool combine(const nv::ITimingCache& inputCache, bool ignoreMismatch) noexcept override;
  bool reset() noexcept override;
  int64_t queryKeys(nv::TimingCacheKey* keyBuffer, int64_t capacity) const noexcept override;
  nv::TimingCacheValue query(const nv::TimingCacheKey& key) const noexcept override;
  bool update(const nv::TimingCacheKey& key, const nv::TimingCacheValue& value) noexcept override;

 private:
  std::shared_ptr<const Reporter> reporter_;
  lathe::TimingCache entries_;
};

}  // namespace lathe::api
