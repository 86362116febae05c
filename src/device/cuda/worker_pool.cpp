// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "base/never_destroyed.h"
#include "base/processors.h"
#include "device/cuda/compiler_worker.h"

namespace lathe::cuda {
namespace {

// When so many workers are lost before any kernel is compiled, NVRTC is taken not to work at all.
constexpr int kHopeless = 8;

void tell_in_process(Log* log, const Error& reason) {
  if (log)
    log->print(Severity::warning,
               "kernels are compiled in this process, one at a time, for lathe-compiler cannot do it: {}",
               reason.message);
}

class WorkerPool final : public Toolchain {
 public:
  // Opening a pool needs the NvrtcInfo of the NVRTC that the options lead to. The first pool of a process asks a
  // worker, later ones remember its answer and start no worker before a kernel is compiled.
  static Result<std::unique_ptr<Toolchain>> open(const std::string& program, const CompilerOptions& options) {
    Known& known = known_nvrtc();
    const std::pair key{program, options.nvrtc};
    {
      const std::lock_guard lock(known.mutex);
      if (const auto it = known.by_names.find(key); it != known.by_names.end())
        return std::make_unique<WorkerPool>(program, options, it->second);
    }
    LATHE_ASSIGN(std::unique_ptr<CompilerWorker> first, CompilerWorker::start(program, options));
    auto pool = std::make_unique<WorkerPool>(program, options, first->nvrtc());
    pool->idle_.push_back(std::move(first));
    pool->remember(pool->nvrtc_);
    return pool;
  }

  WorkerPool(std::string program, CompilerOptions options, NvrtcInfo nvrtc)
      : program_(std::move(program)), options_(std::move(options)), nvrtc_(std::move(nvrtc)), most_(options_.workers) {
    if (most_ == 0) most_ = static_cast<size_t>(allowed_cpus());
    idle_.reserve(most_);  // giving a worker back needs no memory
  }

  const NvrtcInfo& nvrtc() const override { return nvrtc_; }

  Result<Compiled> compile(const CompileRequest& request) override {
    Turn turn(*this);
    LATHE_TRY(begin(turn));
    if (!turn.worker) return instead_->value()->compile(request);
    Result<Compiled> compiled = turn.worker->compile(request);
    turn.is_well = compiled.has_value();
    return compiled;
  }

 private:
  struct Known {
    std::mutex mutex;
    std::map<std::pair<std::string, std::vector<std::string>>, NvrtcInfo> by_names;
  };
  static Known& known_nvrtc() {
    static NeverDestroyed<Known> known;  // for threads
    return *known;
  }

  void remember(const NvrtcInfo& nvrtc) const {
    Known& known = known_nvrtc();
    const std::lock_guard lock(known.mutex);
    known.by_names.insert_or_assign(std::pair{program_, options_.nvrtc}, nvrtc);
  }

  // One of the `most_` places of callers that compile, with its worker. When the turn ends, also by an exception, the
  // place is free again; a worker that has not answered is ended.
  struct Turn {
    explicit Turn(WorkerPool& of) : pool(of) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { pool.end(*this); }

    WorkerPool& pool;
    std::unique_ptr<CompilerWorker> worker;
    bool is_counted = false;  // in busy_
    bool is_well = false;     // the worker has answered
  };

  // Gets a worker for the turn. Where there is none after success, this process has to compile.
  Result<> begin(Turn& turn) {
    while (true) {
      LATHE_TRY(wait_for_place(turn));
      if (!turn.is_counted || turn.worker) return {};
      Result<std::unique_ptr<CompilerWorker>> started = CompilerWorker::start(program_, options_);
      if (!started && started.error().code == ErrorCode::invalid_state) {
        do_without(turn, started.error());
        continue;
      }
      if (!started && wait_for_others(turn, started.error())) continue;
      if (!started) started = CompilerWorker::start(program_, options_);  // what was in its way may be gone
      if (!started) return fail(std::move(started).error());
      if (!((*started)->nvrtc() == nvrtc_)) {
        remember((*started)->nvrtc());  // for the next pool
        return fail(ErrorCode::nvrtc_unsuitable, "'{}' was replaced while it was in use: build again", nvrtc_.path);
      }
      turn.worker = *std::move(started);
      return {};
    }
  }

  Result<> wait_for_place(Turn& turn) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return instead_ || busy_ < most_; });
    if (instead_) return *instead_ ? Result<>() : fail(instead_->error());
    if (lost_ >= kHopeless)
      return fail(ErrorCode::kernel_compile_failed, "the compiler has ended {} times and has compiled nothing", lost_);
    ++busy_;
    turn.is_counted = true;
    while (!idle_.empty() && !turn.worker) {
      if (idle_.back()->is_ours()) turn.worker = std::move(idle_.back());
      idle_.pop_back();
    }
    return {};
  }

  // A further worker runs and cannot open NVRTC, as where memory is short: the kernel is left to those that could.
  // False where there is none.
  bool wait_for_others(Turn& turn, const Error& refused) {
    const std::lock_guard lock(mutex_);
    const size_t others = busy_ - 1 + idle_.size();
    if (others == 0) return false;
    turn.is_counted = false;
    --busy_;
    if (others < most_ && options_.log)
      options_.log->print(Severity::warning,
                          "no more than {} kernels are compiled at one time, for a further worker {}", others,
                          refused.message);
    most_ = std::min(most_, others);
    return true;
  }

  // No further process can be started: only the workers that run are used from now on; where there are none, this
  // process compiles.
  void do_without(Turn& turn, const Error& refused) {
    const std::lock_guard lock(mutex_);
    turn.is_counted = false;
    --busy_;
    most_ = busy_ + idle_.size();
    if (most_ > 0 || instead_) return;
    instead_.emplace(tl::unexpected(Error{ErrorCode::out_of_memory, "", {}}));  // what remains if a call below throws
    changed_.notify_all();
    if (!options_.in_process) {
      *instead_ = fail(refused);
      return;
    }
    *instead_ = open_in_process(options_.nvrtc);
    tell_in_process(options_.log, refused);
  }

  void end(Turn& turn) {
    if (!turn.is_counted) return;
    if (!turn.is_well) turn.worker.reset();  // waits for the process's end: not under the lock
    const std::lock_guard lock(mutex_);
    --busy_;
    if (turn.is_well)
      lost_ = std::numeric_limits<int>::min();
    else
      ++lost_;
    if (turn.worker) idle_.push_back(std::move(turn.worker));
    // After the last loss all that wait fail without taking a place: nobody else would wake them.
    if (lost_ >= kHopeless)
      changed_.notify_all();
    else
      changed_.notify_one();
  }

  const std::string program_;
  const CompilerOptions options_;
  const NvrtcInfo nvrtc_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t most_;  // workers at one time
  size_t busy_ = 0;
  int lost_ = 0;  // workers before the first kernel was compiled; counts from INT_MIN after it
  std::vector<std::unique_ptr<CompilerWorker>> idle_;
  // Compiles in this process. Set once, when no worker is left and none can be started.
  std::optional<Result<std::unique_ptr<Toolchain>>> instead_;
};

Result<std::unique_ptr<Toolchain>> open_pool(const std::string& program, const CompilerOptions& given) {
  CompilerOptions options = given;
  if (options.nvrtc.empty()) options.nvrtc = nvrtc_names();
  Result<std::unique_ptr<Toolchain>> pool = WorkerPool::open(program, options);
  if (pool || pool.error().code != ErrorCode::nvrtc_missing || !given.nvrtc.empty()) return pool;
  // The host program's own library search path (DT_RPATH), which workers do not have, may lead to one.
  const Result<const Nvrtc*> found = nvrtc();
  if (!found) return pool;
  options.nvrtc = {(*found)->path};
  return WorkerPool::open(program, options);
}

}  // namespace

Result<std::unique_ptr<Toolchain>> open_toolchain(const CompilerOptions& options) {
  const Result<std::string> program = compiler_program(options.program);
  if (program && program->empty()) return open_in_process(options.nvrtc);
  Result<std::unique_ptr<Toolchain>> pool = program ? open_pool(*program, options) : fail(program.error());
  if (pool || pool.error().code != ErrorCode::invalid_state || !options.in_process) return pool;
  tell_in_process(options.log, pool.error());
  return open_in_process(options.nvrtc);
}

}  // namespace lathe::cuda
