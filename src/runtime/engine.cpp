// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <algorithm>

#include "plan/memory_planner.h"

namespace lathe {

namespace {

bool is_computed(const plan::Plan& plan, const Shape& dims) {
  std::vector<SymbolId> symbols;
  for (const Expr& dim : dims) dim.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(),
                     [&](SymbolId id) { return plan.symbols[id].source == SymbolSource::computed; });
}

}  // namespace

Result<std::shared_ptr<const Engine>> Engine::load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                   const EngineOptions& options) {
  std::shared_ptr<Engine> engine(new Engine);
  engine->bytes_ = bytes;
  engine->owner_ = owner;
  engine->device_ = options.device;
  LATHE_ASSIGN(engine->loaded_, plan::read_plan(bytes, std::move(owner), options.read));
  const plan::Plan& plan = engine->plan();
  if (!options.device) return engine;
  LATHE_TRY(options.device->check_target(plan.target));
  LATHE_ASSIGN(engine->weights_, options.device->make_resident(plan.weights, engine->loaded_.owner));
  for (const plan::Tensor& tensor : plan.tensors) engine->recordable_ &= !is_computed(plan, tensor.dims);
  engine->programs_.resize(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    LATHE_ASSIGN(StepCode code, engine->make_step(i));
    engine->recordable_ &= code.kernel != nullptr;
    engine->code_.push_back(std::move(code));
  }
  return engine;
}

Result<Engine::StepCode> Engine::make_step(size_t i) {
  const plan::Step& step = plan().steps[i];
  StepCode code;
  if (step.kernel == "eval") {
    const OpInfo* op = find_op(step.op);
    if (!op) return fail(ErrorCode::plan_malformed, "step '{}' evaluates the unknown op '{}'", step.name, step.op);
    LATHE_ASSIGN(code.eval, parse_attributes(op->kind, step.attributes));
    return code;
  }
  StepRecord record{step.kernel, step.params, nullptr, step.launches, &step.workspace, plan().codes};
  if (!step.program.empty()) {
    LATHE_ASSIGN(programs_[i], parse_program(step.program));
    record.program = &programs_[i];
  }
  Result<std::unique_ptr<Kernel>> kernel = device_->make_kernel(record);
  if (!kernel) return fail(with_context(std::move(kernel).error(), fmt::format("step '{}'", step.name)));
  code.kernel = *std::move(kernel);
  return code;
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
