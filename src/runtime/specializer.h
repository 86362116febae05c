// SPDX-License-Identifier: Apache-2.0
// Kernels of an engine's steps that are compiled again for the sizes that runs have, so that these are numbers in their
// code: made by threads in the background, and kept for the sizes that were wanted last. Code that is no faster so for
// the first sizes is not made for others, unless a client wants all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "device/kernel_cache.h"
#include "runtime/open_steps.h"
#include "runtime/specialization_gain.h"

namespace lathe {

// The kernels for one set of sizes.
class SpecializedKernels {
 public:
  // Until they are ready the engine's own kernels run, and so they do for steps without one here. Those that were
  // dropped, because too many were waiting, are never ready: whoever still wants them asks again.
  bool is_ready() const { return state_.load(std::memory_order_acquire) == State::ready; }
  bool is_dropped() const { return state_.load(std::memory_order_acquire) == State::dropped; }
  // Null = the engine's own. Of ready ones.
  const Kernel* of(size_t step) const { return kernels_[step].get(); }
  bool is_empty() const { return is_empty_; }  // all are the engine's own; of ready ones
  uint64_t id() const { return id_; }          // not 0, and no other's of this engine

 private:
  friend class Specializer;
  enum class State : uint8_t { waiting, ready, dropped };

  std::atomic<State> state_ = State::waiting;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // by step
  uint64_t id_ = 0;
  bool is_empty_ = true;
  bool has_all_ = false;                            // none was left out as no faster
  std::vector<int64_t> numbers_;                    // OpenSteps::numbers()
  std::shared_ptr<KernelCache> cache_;              // has the code, or will
  std::vector<std::weak_ptr<KernelCache>> copies_;  // others that do; clients come and go
  uint64_t turn_ = 0;                               // when they were last wanted
};

// Thread-safe. Belongs to the engine, which outlives it.
class Specializer {
 public:
  static constexpr size_t kMostSizes = 256;   // whose kernels are kept
  static constexpr size_t kMostWaiting = 64;  // of them, that wait to be compiled

  // Null where the plan has nothing that can be specialised, or no steps run on the device.
  // `open`: the engine's kernels, beside which others are timed; null = nothing is timed, and everything made.
  static std::unique_ptr<Specializer> create(const plan::Plan& plan, Device& device,
                                             SpecializationGain::OpenKernel open = nullptr);
  ~Specializer();  // when what is being compiled is done; what waits is left out

  // Where code is looked for and kept (null: in memory, while the engine is there), and who is told of it. The log
  // outlives the engine.
  struct Client {
    std::shared_ptr<KernelCache> cache;
    Log* log = nullptr;
    bool wants_all = false;  // also what is no faster
  };
  // What is done about kernels that are neither there nor begun: nothing; they are begun where their code is all in the
  // client's cache, so that they are but loaded; or they are begun in any case.
  enum class IfMissing : uint8_t { leave, load, make };
  // The kernels for the sizes that these symbols have. Null where they are missing and left so, where a size is not
  // known, or nothing is faster that the client would want.
  std::shared_ptr<const SpecializedKernels> want(std::span<const int64_t> symbols, const Client& client,
                                                 IfMissing if_missing = IfMissing::make);
  // Until they are ready, or dropped.
  void wait(const SpecializedKernels& kernels);
  // They stay as long as the engine.
  void keep(std::shared_ptr<const SpecializedKernels> kernels);

  struct Counts {
    size_t sizes = 0;                 // that have kernels, or wait for them
    size_t waiting = 0;               // of these
    size_t made = 0, failed = 0;      // codes of kernels so far
    size_t evicted = 0, dropped = 0;  // sizes so far
  };
  Counts counts() const;

 private:
  using Kernels = std::shared_ptr<SpecializedKernels>;
  struct Job {
    Kernels kernels;
    Client client;
    std::vector<int64_t> symbols;
    std::vector<DeviceCode> code;  // by site; empty where it could not be made
    size_t begun = 0, done = 0;    // sites
  };

  Specializer(const plan::Plan& plan, Device& device, SpecializationGain::OpenKernel open)
      : steps_(plan, device), gain_(plan, device, std::move(open)), verdicts_key_(steps_.key()) {}
  void take_verdicts(KernelCache& cache);
  Kernels begin(std::vector<int64_t> numbers, std::span<const int64_t> symbols, const Client& client);
  void drop_oldest();
  bool start_threads();
  void work();
  DeviceCode code_of(const Job& job, size_t site);
  void note(const Client& client, const Error& error);
  bool is_wanted(size_t site, std::span<const int64_t> numbers, const Client& client) const;
  bool has_code(std::span<const int64_t> numbers, const Client& client) const;
  void finish(Job& job);
  void time_kernels(const Job& job, std::span<const std::unique_ptr<Kernel>> kernels, const GiveTurn& between);
  void keep_verdicts(KernelCache& cache) const;
  bool may_gain(size_t step, std::span<const int64_t> numbers) const;
  void let_runs_go_on();
  void take_behind_launch(std::unique_lock<std::mutex>& turn);
  void copy_code(const SpecializedKernels& kernels, KernelCache& to) const;
  Kernels evict();

  const OpenSteps steps_;
  SpecializationGain gain_;
  const Digest verdicts_key_;  // under which caches have what gain_ has found
  const std::shared_ptr<KernelCache> own_cache_ = std::make_shared<KernelCache>("", size_t{64} << 20);

  // Of who may try kernels, one set of sizes at a time. Taken before driver_turns(), which trials leave to others in
  // between: two that each held one of both would wait for ever.
  std::mutex trials_;
  mutable std::mutex mutex_;  // of all below
  std::condition_variable work_, done_;
  std::vector<Kernels> sizes_;
  std::vector<std::shared_ptr<const SpecializedKernels>> kept_;
  std::vector<std::shared_ptr<Job>> jobs_;  // with sites that no thread has begun; the newest last
  std::vector<std::thread> threads_;
  bool stops_ = false, has_warned_ = false;
  std::optional<Error> no_compiler_;
  uint64_t ids_ = 0, turns_ = 0;
  size_t running_ = 0;  // jobs that are not done
  size_t waiters_ = 0;  // threads in wait()
  Log* log_ = nullptr;  // the last client's
  Counts counts_;
};

}  // namespace lathe
