// SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include <algorithm>

#include "device/forking_queue.h"
#include "device/graph_memory.h"
#include "runtime/driver_turns.h"

namespace lathe {
namespace {

// Sets of sizes that a context keeps what it knows of, and graphs of one that captures each run: as many as there may
// be with kernels of their own, but of so many steps in all, for each step takes memory.
constexpr size_t kFewestSizes = 8, kMostSizes = Specializer::kMostSizes, kMostSteps = 32768;

size_t most_sizes(const plan::Plan& plan) {
  if (plan.symbols.empty()) return kFewestSizes;
  return std::clamp(kMostSteps / std::max<size_t>(plan.steps.size(), 1), kFewestSizes, kMostSizes);
}

}  // namespace

Result<std::unique_ptr<Context>> Context::create(std::shared_ptr<const Engine> engine, MemoryPolicy policy,
                                                 KernelCache* cache) {
  LATHE_TRY(engine->make_kernels(cache));
  LATHE_ASSIGN(PendingWork work, PendingWork::create(engine->device()));
  LATHE_ASSIGN(std::unique_ptr<WeightStream> weights, WeightStream::create(*engine));
  std::unique_ptr<Context> context(new Context(std::move(engine), std::move(work), std::move(weights), policy));
  LATHE_TRY(context->memory_.reserve(context->profile()));
  LATHE_TRY(context->execution_.attach_plugins());
  return context;
}

Context::Context(std::shared_ptr<const Engine> engine, PendingWork work, std::unique_ptr<WeightStream> weights,
                 MemoryPolicy policy)
    : engine_(std::move(engine)),
      work_(std::move(work)),
      weights_(std::move(weights)),
      shapes_(*engine_),
      memory_(*engine_, work_, policy),
      staging_(*engine_, work_),
      storage_(*engine_, shapes_, memory_, staging_, weights_.get()),
      execution_(*engine_, shapes_, memory_, storage_, weights_.get(), hooks),
      replay_(engine_->device(), engine_->plan().bindings.size() + 3, engine_->plan().symbols.size()),
      kernels_(*engine_),
      known_(most_sizes(engine_->plan()), engine_->plan().symbols) {}

Context::~Context() {
  (void)work_.wait();  // its memory goes now
}

Result<> Context::set_profile(size_t profile) {
  LATHE_TRY(shapes_.check_profile(profile));
  if (profile == shapes_.profile()) return {};
  if (memory_.policy() == MemoryPolicy::by_profile) LATHE_TRY(memory_.reserve(profile));
  shapes_.set_profile(profile);
  known_.forget();
  return {};
}

Result<> Context::set_address(size_t i, void* address) {
  const auto& bindings = engine_->plan().bindings;
  if (i >= bindings.size()) return fail(ErrorCode::binding_invalid, "tensor {} does not exist", i);
  if (address && bindings[i].is_shape_tensor && !engine_->device().is_readable_by_host(address))
    return fail(ErrorCode::binding_invalid,
                "shape input '{}' lies at {} in the device's memory, but its values are read on the host: give an "
                "address of the host's",
                bindings[i].name, address);
  staging_.set_address(i, address);
  if (!address && bindings[i].is_shape_tensor) shapes_.unbind();  // prepare() then says what is missing
  const bool reserves = memory_.policy() == MemoryPolicy::largest && !engine_->device().is_host();
  const MemoryLimit* limit = reserves ? engine_->memory_limit(profile()) : nullptr;
  return limit && limit->bindings[i] ? staging_.stage(i, limit->bindings[i]) : Result<>();
}

Result<> Context::set_output_allocator(size_t i, OutputAllocator allocator) {
  const auto& bindings = engine_->plan().bindings;
  if (i >= bindings.size() || bindings[i].is_input)
    return fail(ErrorCode::binding_invalid, "tensor {} is not an output", i);
  staging_.set_allocator(i, std::move(allocator));
  return {};
}

// Works out everything that follows from sizes, unless it is known already. Shapes are bound when all of it is there.
Result<> Context::prepare(const Queue* queue) {
  if (shapes_.is_bound(staging_.addresses())) return {};
  LATHE_TRY(shapes_.read_inputs(staging_.addresses()));
  const KnownSizes::Entry* const known = known_.find(shapes_.symbols());
  if (!known) LATHE_TRY(shapes_.check_sizes());
  staging_.check_overlaps_anew();
  kernels_.forget(known != nullptr);
  execution_.use(kernels_.choose(shapes_.symbols(), queue && queue->is_captured()));
  if (graphs_ != GraphPolicy::of_each_run) replay_.forget();
  LATHE_TRY(place(known));
  shapes_.bind();
  return {};
}

// Between two runs, of which each has one set of kernels.
Result<> Context::choose_kernels(const Queue& queue) {
  if (!kernels_.is_open()) return {};
  KernelChoice::Kernels chosen = kernels_.choose_for_run(shapes_.symbols(), queue.is_captured());
  if (chosen == execution_.specialized()) return {};
  shapes_.unbind();
  execution_.use(std::move(chosen));
  LATHE_TRY(place(known_.find(shapes_.symbols())));
  shapes_.bind();
  return {};
}

// What plugins are told of sizes, they are told whenever these change.
Result<> Context::place(const KnownSizes::Entry* known) {
  const uint64_t kernels = execution_.specialized() ? execution_.specialized()->id() : 0;
  if (known && known->kernels == kernels && !execution_.has_plugins()) {
    execution_.use(known->steps);
    memory_.use(known->memory);
    return {};
  }
  LATHE_TRY(execution_.prepare());
  LATHE_TRY(memory_.place(shapes_, execution_.prepared()->scratch));
  known_.keep(shapes_.symbols(), {kernels, execution_.prepared(), memory_.placement()});
  return {};
}

Result<size_t> Context::memory_bytes() {
  LATHE_TRY(prepare());
  return memory_.bytes();
}

void Context::set_graphs(GraphPolicy policy) {
  graphs_ = policy;
  captures_ = policy != GraphPolicy::none;
  if (policy != GraphPolicy::of_each_run) return;
  replay_.hold_most(most_sizes(engine_->plan()));
  reserve_graphs();
}

// For as many as the profile has sizes, and are held. Where there is no memory, graphs are made as long as there is.
void Context::reserve_graphs() const {
  auto* const reserver = dynamic_cast<GraphReserver*>(&engine_->device());
  if (!reserver || engine_->plan().symbols.empty() || !engine_->is_capturable()) return;
  const size_t most = most_sizes(engine_->plan());
  size_t sizes = 1;
  for (const plan::SymbolProfile& symbol : engine_->plan().profiles[profile()].symbols)
    if (symbol.max > symbol.min) {
      const uint64_t others = static_cast<uint64_t>(symbol.max) - static_cast<uint64_t>(symbol.min);
      sizes = std::min(most, sizes * (1 + std::min<uint64_t>(others, kMostSizes)));
    }
  const auto rehearse = [&](Queue& queue) -> Result<> {
    for (const Engine::StepCode& step : engine_->code())
      if (const auto* const kernel = dynamic_cast<const RehearsedKernel*>(step.kernel.get()))
        LATHE_TRY(kernel->rehearse(queue));
    return {};
  };
  (void)reserver->reserve_graphs(rehearse, sizes);
}

Result<bool> Context::is_capturable() {
  if (engine_->device().is_host() || hooks.profiler || hooks.observer || hooks.waits_after_steps) return false;
  LATHE_TRY(prepare());
  return execution_.is_capturable();
}

void Context::set_auxiliary_streams(std::vector<void*> streams) {
  streams.resize(std::min<size_t>(streams.size(), engine_->plan().auxiliary_streams()));
  auxiliary_ = std::move(streams);
  if (auto* const forking = dynamic_cast<ForkingQueue*>(stream_queue_.get())) forking->set_auxiliary(auxiliary_);
}

Result<> Context::set_temporaries(std::shared_ptr<Device> from) {
  LATHE_TRY(memory_.set_temporaries(std::move(from)));  // waits for the work that uses them
  execution_.release_temporaries();
  return {};
}

Result<> Context::run() {
  if (!own_queue_) {
    LATHE_ASSIGN(own_queue_, engine_->device().make_queue());
  }
  return execute(*own_queue_, Return::when_done);
}

Result<> Context::enqueue(void* stream) {
  if (engine_->device().is_host()) return run();
  if (!stream_queue_ || stream_ != stream) {
    LATHE_ASSIGN(std::unique_ptr<Queue> queue, engine_->device().make_stream_queue(stream));
    LATHE_TRY(work_.follow(*queue));  // before the former stream's queue goes
    if (auto* const forking = dynamic_cast<ForkingQueue*>(queue.get())) forking->set_auxiliary(auxiliary_);
    stream_queue_ = std::move(queue);
    stream_ = stream;
  }
  return execute(*stream_queue_, Return::at_once);
}

Result<> Context::execute(Queue& queue, Return returns) {
  const RandomSequence::Run random(random_);
  RefitGate::Lease lease;
  if (Refittable* const refittable = engine_->refittable()) {
    LATHE_ASSIGN(lease, refittable->use());
  }
  LATHE_TRY(prepare(&queue));
  LATHE_TRY(choose_kernels(queue));
  LATHE_TRY(staging_.check(shapes_));
  LATHE_TRY(memory_.provide());
  shapes_.forget_computed();
  LATHE_TRY(staging_.provide_outputs(shapes_));
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(queue));
  if (engine_->device().is_host()) return execution_.run(queue, Execution::Mode::immediate);
  LATHE_TRY(work_.begin(queue));
  Result<> given = give_work(queue);
  Result<> ended = work_.end(queue);
  if (!given || !ended) return given ? ended : given;
  if (!work_.is_captured()) RunLaunches::of_process().note();
  // Not while runs wait for graphs: launched step by step, they are held up by compilers and loads of what these make.
  const bool awaits_graphs = may_replay() && replay_.awaits_replays();
  if (!awaits_graphs && !work_.is_captured()) kernels_.ask(shapes_.symbols());
  return returns == Return::when_done ? work_.wait() : Result<>();
}

Result<> Context::give_work(Queue& queue) {
  LATHE_TRY(staging_.upload(shapes_, queue));
  LATHE_TRY(run_cached(queue));
  return staging_.download(shapes_, queue);
}

// The queue may be the application's: nothing of the context's stays set.
Result<> Context::run_cached(Queue& queue) {
  if (cached_bytes_ == 0 || !memory_.base()) return run_steps(queue);
  LATHE_TRY(queue.keep_in_cache(memory_.base(), std::min(cached_bytes_, memory_.size())));
  Result<> done = run_steps(queue);
  Result<> reset = queue.keep_in_cache(nullptr, 0);
  return done ? reset : done;
}

// Whether runs such as this one have graphs, unless the application captures them.
bool Context::may_replay() const {
  const bool watched = hooks.profiler || hooks.observer || hooks.waits_after_steps;
  return captures_ && execution_.is_capturable() && !watched;
}

Result<> Context::run_steps(Queue& queue) {
  if (!may_replay() || work_.is_captured()) return execution_.run(queue, Execution::Mode::immediate);
  describe_run();
  // Where sizes take turns, a run is launched before it is captured for the next time: the device is at work meanwhile.
  const bool is_launched = graphs_ == GraphPolicy::of_each_run && !replay_.has_coming();
  if (is_launched) LATHE_TRY(execution_.run(queue, Execution::Mode::immediate));
  LATHE_ASSIGN(const bool held, hold_run());
  if (is_launched) return {};
  if (!held) return execution_.run(queue, Execution::Mode::immediate);
  LATHE_TRY(replay_.replay(queue));
  return hooks.inputs_read ? hooks.inputs_read(queue) : Result<>();
}

// What its graph depends on.
void Context::describe_run() {
  replay_.begin();
  replay_.add_address(memory_.base());
  replay_.add_address(memory_.extra_scratch());
  const plan::Plan& plan = engine_->plan();
  for (const plan::Binding& binding : plan.bindings) replay_.add_address(storage_.base(plan.tensors[binding.tensor]));
  const std::shared_ptr<const SpecializedKernels>& own = execution_.specialized();
  replay_.add_sizes({{static_cast<int64_t>(own ? own->id() : 0)}});
  if (graphs_ == GraphPolicy::of_each_run) replay_.add_sizes(shapes_.symbols());
}

Result<bool> Context::hold_run() {
  Result<bool> held = replay_.hold(
      [this](Queue& recorder) -> Result<> {
        // Launches take it along; a driver that does not allow it here has the window while it replays.
        if (cached_bytes_ > 0) (void)recorder.keep_in_cache(memory_.base(), std::min(cached_bytes_, memory_.size()));
        return execution_.run(recorder, Execution::Mode::capturing);
      },
      execution_.specialized());
  if (!held && execution_.has_plugins()) {
    captures_ = false;
    if (hooks.log)
      hooks.log->print(Severity::warning,
                       "the context's work cannot be captured in a CUDA graph, because a plugin does what a stream in "
                       "capture refuses; its steps are launched one by one from now on: {}",
                       held.error().message);
    held = false;
  }
  return held;
}

}  // namespace lathe
