// SPDX-License-Identifier: Apache-2.0
// An engine: a loaded plan with its kernels made. Immutable and safe to share between threads; contexts hold all state.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "device/cpu/kernel.h"
#include "device/cpu/thread_pool.h"
#include "ops/op.h"
#include "plan/plan.h"
#include "plan/reader.h"

namespace lathe {

// Finds a device's kernels by name; the caller that links the kernels supplies it (runtime/ does not see them).
using KernelFinder = Result<std::unique_ptr<cpu::Kernel>> (*)(std::string_view name, const cpu::Record& record);

// The threads of a runtime. Contexts that run at the same time take turns: the first gets the pool, the others run on
// their own thread alone. Results do not depend on which.
class Workers {
 public:
  static Result<std::shared_ptr<Workers>> create(const cpu::ThreadPoolOptions& options);

  class Lease {
   public:
    cpu::ThreadPool& pool() const { return *pool_; }

   private:
    friend class Workers;
    std::unique_lock<std::mutex> lock_;
    cpu::ThreadPool* pool_ = nullptr;
  };
  Lease lease();
  int size() const { return pool_->size(); }

 private:
  std::mutex mutex_;
  std::unique_ptr<cpu::ThreadPool> pool_;
  std::unique_ptr<cpu::ThreadPool> alone_;  // a pool of the caller only; run() on it is reentrant
};

struct EngineOptions {
  KernelFinder find_kernel = nullptr;
  std::shared_ptr<Workers> workers;
  plan::ReadOptions read;
};

class Engine {
 public:
  // `bytes` stay mapped as long as `owner` lives. Refuses damaged plans and plans of other versions and targets.
  static Result<std::shared_ptr<const Engine>> load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                    const EngineOptions& options);

  const plan::Plan& plan() const { return loaded_.plan; }
  std::span<const std::byte> bytes() const { return bytes_; }  // the plan as given
  Workers& workers() const { return *workers_; }

  // One per plan step: a kernel, or the attributes of the op that an "eval" step evaluates.
  struct StepCode {
    std::unique_ptr<cpu::Kernel> kernel;
    std::unique_ptr<Attributes> eval;
  };
  const std::vector<StepCode>& code() const { return code_; }

  int find_binding(std::string_view name) const;  // -1 = no such tensor
  // Arena bytes that any shape of a profile needs at most; nullopt when some dimension is unbounded.
  std::optional<size_t> arena_bytes(size_t profile) const;

 private:
  Engine() = default;
  plan::LoadedPlan loaded_;
  std::vector<Program> programs_;  // kernels may point to them: never resized after load
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;  // of bytes_; the weights may lie elsewhere
  std::shared_ptr<Workers> workers_;
  std::vector<StepCode> code_;
};

}  // namespace lathe
