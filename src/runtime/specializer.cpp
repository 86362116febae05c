// SPDX-License-Identifier: Apache-2.0
#include "runtime/specializer.h"

#include <sys/resource.h>

#include <algorithm>
#include <system_error>

#include "base/processors.h"
#include "runtime/driver_turns.h"

namespace lathe {
namespace {

constexpr unsigned kMostThreads = 8;
constexpr int kNiceness = 10;  // of threads, and of the compilers that they start: what the application does goes first

bool is_for_want_of_compiler(const Error& error) {
  return error.code == ErrorCode::invalid_state || error.code == ErrorCode::nvrtc_missing ||
         error.code == ErrorCode::nvrtc_unsuitable;
}

// What threads, and a destructor, have to say: a line for which there is no memory is left out, as nobody could be
// told.
void write_line(Log* log, Severity severity, fmt::string_view format, fmt::format_args args) {
  try {
    if (log && log->accepts(severity)) log->write(severity, fmt::vformat(format, args));
  } catch (const std::bad_alloc&) {
  }
}
template <class... Args>
void tell(Log* log, Severity severity, fmt::format_string<Args...> format, const Args&... args) {
  write_line(log, severity, format, fmt::make_format_args(args...));
}

}  // namespace

std::unique_ptr<Specializer> Specializer::create(const plan::Plan& plan, Device& device,
                                                 SpecializationGain::OpenKernel open) {
  std::unique_ptr<Specializer> made(new Specializer(plan, device, std::move(open)));
  return made->steps_.is_empty() ? nullptr : std::move(made);
}

Specializer::~Specializer() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  work_.notify_all();
  done_.notify_all();
  RunLaunches::of_process().note();
  for (std::thread& thread : threads_) thread.join();
  if (ids_ > 0)
    tell(log_, Severity::info,
         "kernels for sizes: {} made, {} failed; of {} sets of sizes, {} were let go of and {} not begun", counts_.made,
         counts_.failed, ids_, counts_.evicted, counts_.dropped + jobs_.size());
}

std::shared_ptr<const SpecializedKernels> Specializer::want(std::span<const int64_t> symbols, const Client& given,
                                                            IfMissing if_missing) {
  if (!given.wants_all) {
    if (given.cache && !gain_.is_decided()) take_verdicts(*given.cache);
    if (!gain_.may_any_gain()) return nullptr;
  }
  std::optional<std::vector<int64_t>> numbers = steps_.numbers(symbols);
  if (!numbers) return nullptr;
  Client client = given;
  if (!client.cache) client.cache = own_cache_;
  Kernels old;  // goes without the lock: that may wait for the device
  std::unique_lock lock(mutex_);
  log_ = client.log;
  const auto find = [&] {
    return std::ranges::find_if(
        sizes_, [&](const Kernels& one) { return one->numbers_ == *numbers && (one->has_all_ || !client.wants_all); });
  };
  auto known = find();
  if (known == sizes_.end() && if_missing != IfMissing::make) {
    lock.unlock();  // keys take a while
    if (if_missing == IfMissing::leave || !has_code(*numbers, client)) return nullptr;
    lock.lock();
    known = find();
  }
  if (known == sizes_.end()) {
    const Kernels kernels = begin(*std::move(numbers), symbols, client);
    old = evict();
    lock.unlock();
    if (client.log) client.log->print(Severity::verbose, "kernels for sizes {}: waiting", kernels->id_);
    return kernels;
  }
  const Kernels kernels = *known;
  kernels->turn_ = ++turns_;
  std::vector<std::weak_ptr<KernelCache>>& copies = kernels->copies_;
  const auto is_client = [&](const auto& one) { return one.lock() == client.cache; };
  if (kernels->cache_ == client.cache || std::ranges::any_of(copies, is_client)) return kernels;
  std::erase_if(copies, [](const auto& one) { return one.expired(); });
  copies.push_back(client.cache);
  const bool is_ready = kernels->is_ready();
  lock.unlock();
  if (is_ready) copy_code(*kernels, *client.cache);
  return kernels;
}

// Those of an earlier process: nothing is timed again, and what does not gain is not loaded.
void Specializer::take_verdicts(KernelCache& cache) {
  if (const std::optional<DeviceCode> verdicts = cache.find_code(verdicts_key_)) gain_.take(verdicts->bytes);
}

// Nothing has happened where there is no memory for it.
Specializer::Kernels Specializer::begin(std::vector<int64_t> numbers, std::span<const int64_t> symbols,
                                        const Client& client) {
  Kernels kernels = std::make_shared<SpecializedKernels>();
  kernels->numbers_ = std::move(numbers);
  kernels->has_all_ = client.wants_all;
  kernels->cache_ = client.cache;
  kernels->kernels_.resize(steps_.num_steps_of_plan());
  const auto job = std::make_shared<Job>(
      Job{kernels, client, {symbols.begin(), symbols.end()}, std::vector<DeviceCode>(steps_.num_sites())});
  sizes_.reserve(sizes_.size() + 1);
  if (start_threads()) {
    jobs_.push_back(job);
    ++running_;
  } else {
    kernels->state_ = SpecializedKernels::State::ready;  // without any
  }
  kernels->id_ = ++ids_;
  kernels->turn_ = ++turns_;
  sizes_.push_back(kernels);
  if (jobs_.size() > kMostWaiting) drop_oldest();
  work_.notify_all();
  return kernels;
}

// Of the jobs that nobody has begun.
void Specializer::drop_oldest() {
  const auto oldest = std::ranges::find(jobs_, size_t{0}, [](const auto& one) { return one->begun; });
  if (oldest == jobs_.end()) return;
  const std::shared_ptr<Job> job = *oldest;
  jobs_.erase(oldest);
  std::erase(sizes_, job->kernels);
  job->kernels->state_ = SpecializedKernels::State::dropped;
  --running_;
  ++counts_.dropped;
  done_.notify_all();
}

bool Specializer::start_threads() {
  const unsigned wanted = std::clamp(static_cast<unsigned>(allowed_cpus()) / 2, 1U, kMostThreads);
  try {
    while (threads_.size() < wanted) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // those that there are will do
  }
  return !threads_.empty();
}

void Specializer::wait(const SpecializedKernels& kernels) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  done_.notify_all();
  RunLaunches::of_process().note();  // this run comes after the kernels
  done_.wait(lock, [&] { return kernels.is_ready() || kernels.is_dropped(); });
  --waiters_;
}

void Specializer::keep(std::shared_ptr<const SpecializedKernels> kernels) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::count(kept_, kernels) == 0) kept_.push_back(std::move(kernels));
}

Specializer::Counts Specializer::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.sizes = sizes_.size();
  counts.waiting = running_;
  return counts;
}

// A thread's life: one site after the other, of sizes that were begun, else of the newest.
void Specializer::work() {
  (void)::setpriority(PRIO_PROCESS, 0, kNiceness);
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stops_ || !jobs_.empty(); });
    if (stops_) return;
    const auto begun = std::ranges::find_if(jobs_, [](const auto& one) { return one->begun > 0; });
    const auto next = begun == jobs_.end() ? jobs_.end() - 1 : begun;
    const std::shared_ptr<Job> job = *next;
    const size_t site = job->begun++;
    if (job->begun == steps_.num_sites()) jobs_.erase(next);
    lock.unlock();
    const bool wanted = is_wanted(site, job->kernels->numbers_, job->client);
    DeviceCode code = wanted ? code_of(*job, site) : DeviceCode();
    lock.lock();
    if (wanted) ++(code.bytes.empty() ? counts_.failed : counts_.made);
    job->code[site] = std::move(code);
    if (++job->done < steps_.num_sites()) continue;
    lock.unlock();
    finish(*job);
    lock.lock();
  }
}

bool Specializer::is_wanted(size_t site, std::span<const int64_t> numbers, const Client& client) const {
  return steps_.is_launched(site, numbers) && (client.wants_all || gain_.may_gain(steps_.module(site)));
}

bool Specializer::may_gain(size_t step, std::span<const int64_t> numbers) const {
  return std::ranges::any_of(steps_.modules_of(step, numbers), [&](uint32_t module) { return gain_.may_gain(module); });
}

// All that is wanted, if anything is.
bool Specializer::has_code(std::span<const int64_t> numbers, const Client& client) const {
  bool has_any = false;
  for (size_t site = 0; site < steps_.num_sites(); ++site) {
    if (!is_wanted(site, numbers, client)) continue;
    if (!client.cache->contains(steps_.key(site, numbers))) return false;
    has_any = true;
  }
  return has_any;
}

// Empty where it cannot be made: that is no reason to fail for whoever runs the open kernels.
DeviceCode Specializer::code_of(const Job& job, size_t site) {
  const auto make = [&]() -> Result<std::vector<std::byte>> {
    {
      const std::lock_guard lock(mutex_);
      if (no_compiler_) return fail(*no_compiler_);
    }
    return steps_.compile(site, job.kernels->numbers_);
  };
  try {
    Result<DeviceCode> code = job.client.cache->get(steps_.key(site, job.kernels->numbers_), make);
    if (code) return *std::move(code);
    note(job.client, code.error());
  } catch (const std::bad_alloc&) {
    note(job.client, {ErrorCode::out_of_memory, "there is no memory left", {}});
  }
  return {};
}

// One warning of all that goes wrong. A kernel that would spill registers is no fault.
void Specializer::note(const Client& client, const Error& error) {
  const bool lacks_compiler = is_for_want_of_compiler(error);
  bool warns = error.code != ErrorCode::kernel_spills;
  {
    const std::lock_guard lock(mutex_);
    if (lacks_compiler && !no_compiler_) no_compiler_ = error;
    warns = warns && !std::exchange(has_warned_, true);
  }
  tell(client.log, warns ? Severity::warning : Severity::verbose, "{}, so that kernels for open sizes go on: {}",
       lacks_compiler ? "there is no compiler that could specialise kernels for the sizes of runs"
                      : "a kernel could not be specialised for the sizes of a run",
       error.message);
}

void Specializer::finish(Job& job) {
  std::vector<std::span<const std::byte>> code;
  std::vector<std::unique_ptr<Kernel>> made(steps_.num_steps_of_plan());
  try {
    for (const DeviceCode& one : job.code) code.push_back(one.bytes);
    std::unique_lock<std::mutex> trials;
    const auto has_trials = [&] { return !job.client.wants_all && !gain_.is_decided(); };
    if (has_trials()) trials = std::unique_lock(trials_);
    std::unique_lock turn(driver_turns(), std::defer_lock);
    std::ranges::any_of(code, [](const auto& one) { return !one.empty(); }) ? take_behind_launch(turn) : turn.lock();
    const auto between = [&](TurnOf work) {
      turn.unlock();
      let_runs_go_on();
      work == TurnOf::driver ? take_behind_launch(turn) : turn.lock();
    };
    made = steps_.make_kernels(job.kernels->numbers_, code, [&] { between(TurnOf::driver); });
    if (has_trials()) time_kernels(job, made, between);
    for (size_t step = 0; step < made.size() && !job.client.wants_all; ++step)
      if (made[step] && !may_gain(step, job.kernels->numbers_)) made[step].reset();
  } catch (const std::bad_alloc&) {
    note(job.client, {ErrorCode::out_of_memory, "there is no memory left", {}});
  }
  SpecializedKernels& kernels = *job.kernels;
  // Told before a run that waits for them goes on: it may let go of the engine, which waits for this thread, while it
  // holds what the log needs, an interpreter's lock, say.
  tell(job.client.log, Severity::verbose, "kernels for sizes {}: ready", kernels.id_);
  std::unique_lock lock(mutex_);
  kernels.is_empty_ = std::ranges::all_of(made, [](const auto& kernel) { return !kernel; });
  kernels.kernels_ = std::move(made);
  kernels.state_.store(SpecializedKernels::State::ready, std::memory_order_release);
  --running_;
  done_.notify_all();
  try {
    const std::vector<std::weak_ptr<KernelCache>> copies = kernels.copies_;
    lock.unlock();
    for (const std::weak_ptr<KernelCache>& copy : copies)
      if (const std::shared_ptr<KernelCache> to = copy.lock()) copy_code(kernels, *to);
  } catch (const std::bad_alloc&) {  // those caches go without
  }
}

// Steps without a kernel in the set run the engine's own. Those of the same code take the same time; those that cannot
// be timed count for no run.
void Specializer::time_kernels(const Job& job, std::span<const std::unique_ptr<Kernel>> kernels,
                               const GiveTurn& between) {
  std::vector<std::pair<std::vector<uint32_t>, SpecializationGain::Times>> timed;
  SpecializationGain::Times run;
  for (size_t step = 0; step < kernels.size(); ++step) {
    if (!kernels[step]) continue;
    const std::vector<uint32_t> modules = steps_.modules_of(step, job.kernels->numbers_);
    auto known = std::ranges::find(timed, modules, [](const auto& one) { return one.first; });
    if (known == timed.end()) {
      between(TurnOf::driver);
      const auto times = gain_.measure(step, *kernels[step], modules, job.symbols, between);
      if (!times)
        tell(job.client.log, Severity::verbose, "kernels for sizes are made without being timed: {}",
             times.error().message);
      timed.emplace_back(modules, times ? *times : SpecializationGain::Times());
      known = timed.end() - 1;
    }
    run += known->second;
  }
  if (timed.empty()) return;
  gain_.note_run(run);
  keep_verdicts(*job.client.cache);
  tell(job.client.log, Severity::verbose, "kernels for sizes {}: {:.1f} us, those for open sizes {:.1f} us",
       job.kernels->id_, run.special, run.open);
}

void Specializer::keep_verdicts(KernelCache& cache) const {
  if (const std::vector<std::byte> verdicts = gain_.verdicts(); !verdicts.empty())
    cache.put(verdicts_key_, {verdicts, nullptr});
}

// Between two loads of code, for which the driver makes runs wait: one of them gets through. Where a run waits for
// these kernels there is nothing to let through.
void Specializer::let_runs_go_on() {
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, kBetweenTurns, [&] { return stops_ || waiters_ > 0; });
}

// When a run has just been launched: not when who had the turn gives it away, which is about when the next run comes. A
// run that waits for these kernels launches none.
void Specializer::take_behind_launch(std::unique_lock<std::mutex>& turn) {
  constexpr std::chrono::milliseconds kMost(4);
  const auto awaits = [&] {
    const std::lock_guard lock(mutex_);
    return !stops_ && waiters_ == 0;
  };
  while (awaits()) {
    RunLaunches::of_process().wait(kMost);
    if (turn.try_lock()) return;
    const std::lock_guard others(driver_turns());
  }
  turn.lock();
}

void Specializer::copy_code(const SpecializedKernels& kernels, KernelCache& to) const {
  for (size_t site = 0; site < steps_.num_sites(); ++site) {
    const Digest key = steps_.key(site, kernels.numbers_);
    if (const std::optional<DeviceCode> code = kernels.cache_->find_code(key)) to.put(key, *code);
  }
  keep_verdicts(to);
}

// The sizes that were not wanted for longest, where there are too many.
Specializer::Kernels Specializer::evict() {
  if (sizes_.size() <= kMostSizes) return nullptr;
  const auto age = [](const Kernels& one) { return one->is_ready() ? one->turn_ : UINT64_MAX; };
  const auto oldest = std::ranges::min_element(sizes_, {}, age);
  Kernels kernels = *oldest;
  if (!kernels->is_ready()) return nullptr;
  sizes_.erase(oldest);
  ++counts_.evicted;
  return kernels;
}

}  // namespace lathe
