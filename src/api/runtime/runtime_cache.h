// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "api/report.h"
#include "device/kernel_cache.h"

namespace lathe::api {

class RuntimeCache final : public nv::IRuntimeCache, public nv::apiv::VRuntimeCache {
 public:
  RuntimeCache(std::shared_ptr<const Reporter> reporter, std::shared_ptr<KernelCache> kernels)
      : reporter_(std::move(reporter)), kernels_(std::move(kernels)) {
    mImpl = this;
  }
  ~RuntimeCache() noexcept override = default;

  const Reporter& reporter() const { return *reporter_; }
  const std::shared_ptr<KernelCache>& kernels() const { return kernels_; }

  nv::IRuntimeCache* getPImpl() noexcept override { return this; }
  nv::IHostMemory* serialize() const noexcept override;
  bool deserialize(const void* blob, size_t size) noexcept override;
  bool reset() noexcept override;

 private:
  std::shared_ptr<const Reporter> reporter_;
  std::shared_ptr<KernelCache> kernels_;
};

}  // namespace lathe::api
