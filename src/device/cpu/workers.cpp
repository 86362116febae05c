// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/workers.h"

namespace lathe::cpu {

Result<std::shared_ptr<Workers>> Workers::create(const ThreadPoolOptions& options) {
  auto workers = std::make_shared<Workers>();
  LATHE_ASSIGN(workers->pool_, ThreadPool::create(options));
  ThreadPoolOptions alone = options;
  alone.threads = 1;
  LATHE_ASSIGN(workers->alone_, ThreadPool::create(alone));
  return workers;
}

Workers::Lease Workers::lease() {
  Lease lease;
  lease.lock_ = std::unique_lock(mutex_, std::try_to_lock);
  lease.pool_ = lease.lock_.owns_lock() ? pool_.get() : alone_.get();
  return lease;
}

}  // namespace lathe::cpu
