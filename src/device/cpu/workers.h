// SPDX-License-Identifier: Apache-2.0
// The threads of a runtime. Contexts that run at the same time take turns: the first gets the pool, the others run on
// their own thread alone. Results do not depend on which.
#pragma once

#include <memory>
#include <mutex>

#include "device/cpu/thread_pool.h"

namespace lathe::cpu {

class Workers {
 public:
  static Result<std::shared_ptr<Workers>> create(const ThreadPoolOptions& options);

  class Lease {
   public:
    ThreadPool& pool() const { return *pool_; }

   private:
    friend class Workers;
    std::unique_lock<std::mutex> lock_;
    ThreadPool* pool_ = nullptr;
  };
  Lease lease();
  int size() const { return pool_->size(); }

 private:
  std::mutex mutex_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ThreadPool> alone_;  // a pool of the caller only; run() on it is reentrant
};

}  // namespace lathe::cpu
