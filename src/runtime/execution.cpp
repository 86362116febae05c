// SPDX-License-Identifier: Apache-2.0
#include "runtime/execution.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/trace_ranges.h"
#include "plan/bindings_read.h"
#include "plan/limits.h"
#include "plan/validate.h"
#include "runtime/capture_limit.h"

namespace lathe {
namespace {

bool reads_input(const plan::Plan& plan, const plan::Step& step) {
  return plan::reads_binding(plan, step, [&](uint32_t binding) { return plan.bindings[binding].is_input; });
}

// The section that begins with the step; the end of all where none does.
std::vector<plan::ParallelSection>::const_iterator section_at(const plan::Plan& plan, size_t step) {
  const auto found = std::lower_bound(plan.sections.begin(), plan.sections.end(), step,
                                      [](const plan::ParallelSection& section, size_t i) { return section.first < i; });
  return found != plan.sections.end() && found->first == step ? found : plan.sections.end();
}

}  // namespace

Execution::Execution(const Engine& engine, ShapeBinding& shapes, ContextMemory& memory, TensorStorage& storage,
                     WeightStream* weights, const RunHooks& hooks)
    : engine_(engine),
      plan_(engine.plan()),
      shapes_(shapes),
      memory_(memory),
      storage_(storage),
      weights_(weights),
      hooks_(hooks),
      host_(engine, shapes, storage),
      blocks_(engine, shapes, memory, storage, host_,
              [this](size_t first, size_t end, Queue& queue) { return run_steps(first, end, queue); }),
      none_{std::vector<StepOperands>(plan_.steps.size()), std::vector<size_t>(plan_.steps.size()), {}} {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const plan::Step& step = plan_.steps[i];
    StepOperands& operands = none_.operands[i];
    operands.inputs.resize(step.inputs.size());
    operands.outputs.resize(step.outputs.size());
  }
  now_ = std::make_shared<PreparedSteps>(none_);
  for (size_t i = 0, end = 0, outermost = 0; i < plan_.steps.size(); ++i) {
    if (i == end) end = engine.places()[outermost = i].end;
    if (reads_input(plan_, plan_.steps[i])) readers_end_ = engine.places()[outermost].end;
  }
  for (const plan::ParallelSection& section : plan_.sections)
    if (readers_end_ > section.first && readers_end_ < section.end) readers_end_ = section.end;
}

Result<> Execution::attach_plugins() {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (!engine_.code()[i].plugin) continue;
    LATHE_ASSIGN(plugins_[i], PluginKernel::make(engine_, i));
  }
  return {};
}

const Kernel* Execution::kernel(size_t step) const {
  if (const Kernel* const own = specialized_ ? specialized_->of(step) : nullptr) return own;
  const auto plugin = plugins_.find(step);
  return plugin == plugins_.end() ? engine_.code()[step].kernel.get() : plugin->second.get();
}

Result<> Execution::prepare() {
  if (now_.use_count() > 1)
    now_ = std::make_shared<PreparedSteps>(none_);
  else
    *now_ = none_;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (plan_.steps[i].is<plan::Block>()) continue;
    Result<size_t> workspace = 0;
    if (const Result<> checked = check_conditional(i); !checked)
      workspace = fail(checked.error());
    else if (!engine_.is_data_dependent_step(i))
      workspace = prepare_step(i);
    if (workspace)
      now_->scratch[i] = *workspace;
    else if (engine_.is_conditional(i))
      now_->refused.emplace(i, std::move(workspace).error());
    else
      return fail(std::move(workspace).error());
  }
  now_->is_capturable = engine_.is_capturable();
  if (now_->is_capturable) {
    LATHE_ASSIGN(now_->is_capturable, CaptureLimit(engine_, shapes_, storage_, blocks_).allows());
  }
  return {};
}

// Windows that could not be checked before it was known whether they matter.
Result<> Execution::check_conditional(size_t i) const {
  if (!engine_.is_conditional(i)) return {};
  const plan::Step& step = plan_.steps[i];
  for (const auto* ids : {&step.inputs, &step.outputs})
    for (const plan::TensorId id : *ids)
      if (id != plan::kNoTensor && engine_.conditional_tensors()[id])
        LATHE_TRY(plan::check_window(plan_, plan_.tensors[id], shapes_.symbols()));
  return {};
}

// Addresses are filled in by run_step().
Result<size_t> Execution::prepare_step(size_t i) {
  const plan::Step& step = plan_.steps[i];
  StepOperands& operands = now_->operands[i];
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    LATHE_ASSIGN(operands.inputs[k], shapes_.resolve(step.inputs[k]));
  }
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    LATHE_ASSIGN(operands.outputs[k], shapes_.resolve(step.outputs[k]));
  }
  const Kernel* const runs = kernel(i);
  if (!runs) return 0;
  Result<size_t> workspace = runs->prepare({operands.inputs, operands.outputs, shapes_.symbols(), &operands.numbers},
                                           engine_.device().threads());
  if (workspace) return workspace;
  return fail(with_context(std::move(workspace).error(), fmt::format("step '{}' ({})", step.name, step.kernel())));
}

Result<> Execution::run(Queue& queue, Mode mode) {
  const bool tells = hooks_.inputs_read && mode == Mode::immediate && !engine_.device().is_host();
  const size_t told = tells ? readers_end_ : 0;
  reported_ms_ = 0;
  Result<> done = weights_ ? weights_->begin(queue) : Result<>();
  if (done) done = run_steps(0, told, queue);
  if (done && tells) done = hooks_.inputs_read(queue);
  if (done) done = run_steps(told, plan_.steps.size(), queue);
  Result<> ended = weights_ ? weights_->end(queue) : Result<>();
  return done ? ended : done;
}

// Who looks on sees one step at a time, and so do weights that are copied.
Result<> Execution::run_steps(size_t first, size_t end, Queue& queue) {
  const bool watched = hooks_.profiler || hooks_.observer || hooks_.waits_after_steps;
  auto* const forking = plan_.sections.empty() || watched || weights_ ? nullptr : dynamic_cast<ForkingQueue*>(&queue);
  for (size_t i = first; i < end;) {
    const auto section = forking ? section_at(plan_, i) : plan_.sections.end();
    if (section != plan_.sections.end()) {
      LATHE_TRY(run_section(*section, *forking, queue));
      i = section->end;
    } else {
      LATHE_TRY(run_watched(i, queue));
      i = engine_.places()[i].end;
    }
  }
  return {};
}

// What has been forked is joined whatever fails: its work is the run's.
Result<> Execution::run_section(const plan::ParallelSection& section, ForkingQueue& queue, Queue& main) {
  std::array<Queue*, plan::kMaxStreams + 1> queues{&main};
  Result<> result;
  for (size_t i = section.first; i < section.end && result; ++i) {
    const uint32_t stream = plan_.steps[i].stream;
    if (queues[stream]) continue;
    Result<Queue*> forked = queue.fork(stream);
    if (forked)
      queues[stream] = *forked;
    else
      result = fail(std::move(forked).error());
  }
  for (size_t i = section.first; i < section.end && result; ++i) result = run_step(i, *queues[plan_.steps[i].stream]);
  for (size_t stream = 1; stream < queues.size(); ++stream) {
    if (!queues[stream]) continue;
    const Result<> joined = queue.join(stream);
    if (result) result = joined;
  }
  return result;
}

Result<> Execution::run_watched(size_t i, Queue& queue) {
  using Clock = std::chrono::steady_clock;
  const plan::Step& step = plan_.steps[i];
  const Clock::time_point start = hooks_.profiler ? Clock::now() : Clock::time_point();
  const double reported = reported_ms_;
  if (weights_) LATHE_TRY(weights_->before(i, queue));
  LATHE_TRY(run_step(i, queue));
  if (weights_) LATHE_TRY(weights_->after(i, queue));
  if (hooks_.profiler || hooks_.waits_after_steps) {
    Result<> done = engine_.device().wait(queue);
    if (!done) return fail(with_context(std::move(done).error(), fmt::format("step '{}'", step.name)));
  }
  if (hooks_.profiler) {
    const double total = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    const double own = total - (reported_ms_ - reported);  // without the steps of a block
    reported_ms_ += own;
    hooks_.profiler(step, own);
  }
  return hooks_.observer ? host_.show_results(step, hooks_.observer, queue) : Result<>();
}

Result<> Execution::run_step(size_t i, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  StepOperands& operands = now_->operands[i];
  const TraceRange range(hooks_.ranges ? (*hooks_.ranges)[i].c_str() : nullptr);
  if (step.is<plan::Block>()) return blocks_.run(i, queue);
  if (const auto refused = now_->refused.find(i); refused != now_->refused.end()) return fail(refused->second);
  const Kernel* const runs = kernel(i);
  if (!runs) return host_.run(i, operands, queue);
  if (engine_.is_data_dependent_step(i)) LATHE_TRY(prepare_data_dependent(i, queue));
  LATHE_ASSIGN(std::byte* const workspace, memory_.scratch(i, now_->scratch[i]));
  const auto place = [&](plan::TensorId id, TensorArg& arg) {
    if (id != plan::kNoTensor) arg.data = storage_.address(plan_.tensors[id]);
  };
  for (size_t k = 0; k < step.inputs.size(); ++k) place(step.inputs[k], operands.inputs[k]);
  for (size_t k = 0; k < step.outputs.size(); ++k) place(step.outputs[k], operands.outputs[k]);
  const Result<> enqueued =
      runs->enqueue({operands.inputs, operands.outputs, shapes_.symbols(), &operands.numbers}, workspace, queue);
  if (enqueued) return step.is<plan::PluginCall>() ? host_.read_written_sizes(step, queue) : Result<>();
  return fail(with_context(enqueued.error(), fmt::format("step '{}' ({})", step.name, step.kernel())));
}

// What could not be prepared before the steps ahead had run: sizes, the outputs' memory, the scratch that it wants.
Result<> Execution::prepare_data_dependent(size_t i, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  if (!step.is<plan::PluginCall>()) {
    LATHE_TRY(host_.read_counts(step, queue));
    if (engine_.code()[i].eval) LATHE_TRY(host_.find_sizes(i, queue));
  }
  LATHE_ASSIGN(now_->scratch[i], prepare_step(i));
  for (const plan::TensorId id : step.outputs) LATHE_TRY(storage_.provide(id));
  for (const auto* ids : {&step.inputs, &step.outputs})
    for (const plan::TensorId id : *ids) LATHE_TRY(storage_.check_window(id));
  return {};
}

}  // namespace lathe
