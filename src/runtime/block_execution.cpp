// SPDX-License-Identifier: Apache-2.0
#include "runtime/block_execution.h"

#include <algorithm>

namespace lathe {
namespace {

constexpr size_t kTrips = 0, kCondition = 1, kControls = 2;  // operands and params of a loop

// by dynamic slot, the first step that has a value there.
std::vector<size_t> find_slots_begin(const plan::Plan& plan) {
  std::vector<size_t> begin(plan.dynamic_slots, plan.steps.size());
  for (size_t i = plan.steps.size(); i-- > 0;) {
    const plan::Step& step = plan.steps[i];
    const auto use = [&](const std::vector<plan::TensorId>& ids) {
      for (const plan::TensorId id : ids)
        if (id != plan::kNoTensor && plan.tensors[id].storage == plan::StorageKind::dynamic)
          begin[plan.tensors[id].index] = i;
    };
    use(step.inputs);
    use(step.outputs);
    const auto* block = std::get_if<plan::Block>(&step.work);
    for (const plan::Body& body : block ? std::span(block->bodies) : std::span<const plan::Body>()) {
      use(body.params);
      use(body.results);
    }
  }
  return begin;
}

const plan::Block& block_of(const plan::Step& step) { return std::get<plan::Block>(step.work); }

}  // namespace

BlockExecution::BlockExecution(const Engine& engine, ShapeBinding& shapes, ContextMemory& memory,
                               TensorStorage& storage, HostEvaluation& host, RunSteps run_steps)
    : engine_(engine),
      plan_(engine.plan()),
      shapes_(shapes),
      storage_(storage),
      host_(host),
      run_steps_(std::move(run_steps)),
      numbers_(engine.device(), memory),
      values_(plan_.steps.size()) {
  const std::vector<size_t> slots_begin = find_slots_begin(plan_);
  for (size_t i = 0; i < values_.size(); ++i) {
    const plan::Step& step = plan_.steps[i];
    const auto* block = std::get_if<plan::Block>(&step.work);
    if (!block) continue;
    values_[i] = std::make_unique<BlockValues>(BlockValues{{engine_, step, shapes_, memory, storage_},
                                                           {plan_, i, slots_begin, memory},
                                                           {engine_, i, memory, storage_},
                                                           {}});
    for (size_t k = 0; k < block->stacked.size(); ++k)
      values_[i]->stacked.emplace_back(engine_, shapes_, memory, storage_, step.outputs[block->carried + k],
                                       block->stacked[k], block->bodies[0].results[1 + block->carried + k]);
  }
}

Result<> BlockExecution::run(size_t i, Queue& queue) {
  switch (block_of(plan_.steps[i]).kind) {
    case plan::BlockKind::loop:
      return run_loop(i, queue);
    case plan::BlockKind::branch:
      return run_branch(i, queue);
    case plan::BlockKind::call:
      break;
  }
  return run_call(i, queue);
}

Result<> BlockExecution::run_branch(size_t i, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  const plan::Block& block = block_of(step);
  LATHE_ASSIGN(const bool holds, host_.read_truth(step.inputs[0], queue));
  const plan::Body& body = block.bodies[holds ? 0 : 1];
  const size_t first = i + 1 + (holds ? 0 : block.bodies[0].steps);
  LATHE_TRY(shapes_.check(body.constraints));
  LATHE_TRY(run_steps_(first, first + body.steps, queue));
  return leave_body(i, body.results, queue);
}

Result<> BlockExecution::run_call(size_t i, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  const plan::Body& body = block_of(step).bodies[0];
  ValueMoves& moves = values_[i]->moves;
  moves.clear();
  for (size_t k = 0; k < body.params.size(); ++k) LATHE_TRY(moves.add(step.inputs[k], body.params[k]));
  LATHE_TRY(moves.run(engine_.block_symbols()[i].inside, queue));
  LATHE_TRY(shapes_.check(body.constraints));
  LATHE_TRY(run_steps_(i + 1, i + 1 + body.steps, queue));
  return leave_body(i, body.results, queue);
}

Result<> BlockExecution::leave_body(size_t i, std::span<const plan::TensorId> results, Queue& queue) {
  ValueMoves& moves = values_[i]->moves;
  moves.clear();
  for (size_t k = 0; k < results.size(); ++k) LATHE_TRY(moves.add(results[k], plan_.steps[i].outputs[k]));
  values_[i]->swaps.restore();
  return moves.run(engine_.block_symbols()[i].outputs, queue);
}

Result<> BlockExecution::run_loop(size_t i, Queue& queue) {
  const RestoredBuffers restored(*values_[i]);  // when it has failed, too
  return run_rounds(i, queue);
}

Result<> BlockExecution::run_rounds(size_t i, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  const plan::Body& body = block_of(step).bodies[0];
  LATHE_ASSIGN(const int64_t most, most_rounds(step, queue));
  LATHE_ASSIGN(const bool asks, asks_again(body, queue));
  for (StackedValue& value : values_[i]->stacked)
    value.begin(asks && most > 0 ? std::nullopt : std::optional<int64_t>(most));
  bool goes_on = most > 0;
  if (goes_on) LATHE_TRY(shapes_.check(body.constraints));
  int64_t round = 0;
  while (goes_on) {
    Result<> ran = run_round(i, round, queue);
    if (!ran) return fail(with_context(std::move(ran).error(), fmt::format("round {} of '{}'", round, step.name)));
    goes_on = ++round < most;
    if (goes_on && asks) {
      LATHE_ASSIGN(goes_on, host_.read_truth(body.results[0], queue));
    }
  }
  return finish_loop(i, round, queue);
}

Result<> BlockExecution::run_round(size_t i, int64_t round, Queue& queue) {
  LATHE_TRY(begin_round(i, round, queue));
  LATHE_TRY(run_steps_(i + 1, i + 1 + block_of(plan_.steps[i]).bodies[0].steps, queue));
  for (StackedValue& value : values_[i]->stacked) LATHE_TRY(value.take(round, queue));
  return {};
}

Result<> BlockExecution::begin_round(size_t i, int64_t round, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  const plan::Block& block = block_of(step);
  const plan::Body& body = block.bodies[0];
  BlockValues& values = *values_[i];
  values.moves.clear();
  LATHE_TRY(values.moves.add(round == 0 ? step.inputs[kCondition] : body.results[0], body.params[kCondition]));
  for (size_t k = 0; k < block.carried; ++k) {
    const plan::TensorId param = body.params[kControls + k], result = body.results[1 + k];
    if (round == 0)
      LATHE_TRY(values.moves.add(step.inputs[kControls + k], param));
    else if (values.swaps.swaps(k))
      LATHE_TRY(values.moves.add_sizes(result, param));
    else
      LATHE_TRY(values.moves.add(result, param));
  }
  for (size_t k = 0; k < block.scanned.size(); ++k) {
    const size_t operand = kControls + block.carried + k;
    LATHE_ASSIGN(const bool viewed, values.views.view_scanned(k, round));
    if (!viewed) LATHE_TRY(values.moves.add_slice(step.inputs[operand], block.scanned[k], round, body.params[operand]));
  }
  LATHE_TRY(values.moves.run(engine_.block_symbols()[i].inside, queue));
  if (round > 0) values.swaps.next_round();
  for (size_t k = 0; k < block.stacked.size(); ++k) LATHE_TRY(values.views.view_stacked(k, round));
  return write_round(body.params[kTrips], round, queue);
}

Result<> BlockExecution::write_round(plan::TensorId param, int64_t round, Queue& queue) {
  if (param == plan::kNoTensor) return {};
  LATHE_TRY(storage_.provide(param));
  LATHE_ASSIGN(const TensorArg place, storage_.find(param));
  return numbers_.write(round, place.as<std::byte>(), queue);
}

Result<> BlockExecution::finish_loop(size_t i, int64_t rounds, Queue& queue) {
  const plan::Step& step = plan_.steps[i];
  const plan::Block& block = block_of(step);
  for (StackedValue& value : values_[i]->stacked) LATHE_TRY(value.finish(rounds, queue));
  const auto first = rounds == 0 ? step.inputs.begin() + kControls : block.bodies[0].results.begin() + 1;
  return leave_body(i, {first, first + block.carried}, queue);
}

// How often the loop runs unless a round ends it: INT64_MAX = for ever.
Result<int64_t> BlockExecution::most_rounds(const plan::Step& step, Queue& queue) const {
  LATHE_ASSIGN(int64_t most, sized_rounds(step));
  if (step.inputs[kTrips] != plan::kNoTensor) {
    LATHE_ASSIGN(const int64_t trips, host_.read_number(step.inputs[kTrips], queue));
    most = std::min(most, trips);
  }
  most = std::max<int64_t>(most, 0);
  if (most == 0 || step.inputs[kCondition] == plan::kNoTensor) return most;
  LATHE_ASSIGN(const bool holds, host_.read_truth(step.inputs[kCondition], queue));
  return holds ? most : 0;
}

Result<int64_t> BlockExecution::sized_rounds(const plan::Step& step) const {
  const plan::Block& block = block_of(step);
  int64_t most = INT64_MAX;
  for (const Expr& trips : block.trips) {
    const std::optional<int64_t> count = trips.evaluate(shapes_.symbols());
    if (!count) return fail(ErrorCode::execution_failed, "step '{}' (loop) has no trip count yet", step.name);
    most = *count;
  }
  LATHE_ASSIGN(const int64_t length, scanned_length(step));
  return std::min(most, length);
}

// INT64_MAX = nothing is scanned.
Result<int64_t> BlockExecution::scanned_length(const plan::Step& step) const {
  const plan::Block& block = block_of(step);
  int64_t length = INT64_MAX;
  for (size_t k = 0; k < block.scanned.size(); ++k) {
    const plan::TensorId id = step.inputs[kControls + block.carried + k];
    LATHE_ASSIGN(const TensorArg whole, shapes_.resolve(id));
    const int64_t here = whole.dims[block.scanned[k].axis];
    if (k > 0 && here != length)
      return fail(ErrorCode::execution_failed, "step '{}' (loop) scans '{}' of {} slices, and '{}' has {}", step.name,
                  plan_.tensors[step.inputs[kControls + block.carried]].name, length, plan_.tensors[id].name, here);
    length = here;
  }
  return length;
}

// Whether rounds may end the loop.
Result<bool> BlockExecution::asks_again(const plan::Body& body, Queue& queue) const {
  const plan::TensorId id = body.results[0];
  if (id == plan::kNoTensor) return false;
  if (plan_.tensors[id].storage != plan::StorageKind::constant) return true;
  LATHE_ASSIGN(const bool holds, host_.read_truth(id, queue));
  return !holds;
}

void BlockExecution::release_temporaries() {
  for (const std::unique_ptr<BlockValues>& values : values_)
    for (StackedValue& value : values ? std::span(values->stacked) : std::span<StackedValue>()) value.release();
}

}  // namespace lathe
