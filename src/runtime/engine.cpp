// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include "plan/memory_planner.h"

namespace lathe {

Result<std::shared_ptr<Workers>> Workers::create(const cpu::ThreadPoolOptions& options) {
  auto workers = std::make_shared<Workers>();
  LATHE_ASSIGN(workers->pool_, cpu::ThreadPool::create(options));
  cpu::ThreadPoolOptions alone = options;
  alone.threads = 1;
  LATHE_ASSIGN(workers->alone_, cpu::ThreadPool::create(alone));
  return workers;
}

Workers::Lease Workers::lease() {
  Lease lease;
  lease.lock_ = std::unique_lock(mutex_, std::try_to_lock);
  lease.pool_ = lease.lock_.owns_lock() ? pool_.get() : alone_.get();
  return lease;
}

Result<std::shared_ptr<const Engine>> Engine::load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                   const EngineOptions& options) {
  std::shared_ptr<Engine> engine(new Engine);
  engine->bytes_ = bytes;
  engine->owner_ = owner;
  engine->workers_ = options.workers;
  LATHE_ASSIGN(engine->loaded_, plan::read_plan(bytes, std::move(owner), options.read));
  const plan::Plan& plan = engine->plan();
  engine->programs_.resize(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const plan::Step& step = plan.steps[i];
    StepCode code;
    if (step.kernel == "eval") {
      const OpInfo* op = find_op(step.op);
      if (!op) return fail(ErrorCode::plan_malformed, "step '{}' evaluates the unknown op '{}'", step.name, step.op);
      LATHE_ASSIGN(code.eval, parse_attributes(op->kind, step.attributes));
    } else {
      cpu::Record record{step.params, nullptr};
      if (!step.program.empty()) {
        LATHE_ASSIGN(engine->programs_[i], parse_program(step.program));
        record.program = &engine->programs_[i];
      }
      Result<std::unique_ptr<cpu::Kernel>> kernel = options.find_kernel(step.kernel, record);
      if (!kernel) return fail(with_context(std::move(kernel).error(), fmt::format("step '{}'", step.name)));
      code.kernel = *std::move(kernel);
    }
    engine->code_.push_back(std::move(code));
  }
  return engine;
}

int Engine::find_binding(std::string_view name) const {
  for (size_t i = 0; i < plan().bindings.size(); ++i)
    if (plan().bindings[i].name == name) return static_cast<int>(i);
  return -1;
}

std::optional<size_t> Engine::arena_bytes(size_t profile) const {
  std::vector<Range> ranges;
  for (const plan::SymbolProfile& symbol : plan().profiles[profile].symbols) ranges.push_back({symbol.min, symbol.max});
  std::vector<plan::Lifetime> lifetimes;
  for (const plan::Buffer& buffer : plan().buffers) {
    const int64_t bytes = buffer.bytes.range(ranges).max;
    if (bytes == Range::kUnbounded || bytes < 0) return std::nullopt;
    lifetimes.push_back({static_cast<size_t>(bytes), buffer.first, buffer.last});
  }
  size_t total = 0;
  plan::plan_memory(lifetimes, &total);
  return total;
}

}  // namespace lathe
