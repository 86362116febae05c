// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture_limit.h"

#include <algorithm>
#include <cstring>

#include "runtime/tensor_copy.h"

namespace lathe {
namespace {

// a * b + c, of numbers that are not negative; INT64_MAX where that is too large.
int64_t multiply_add(int64_t a, int64_t b, int64_t c) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) || __builtin_add_overflow(result, c, &result) ? INT64_MAX : result;
}

}  // namespace

Result<bool> CaptureLimit::allows() const {
  for (const plan::Step& step : plan_.steps) {
    if (!step.is<plan::Block>()) continue;
    LATHE_ASSIGN(const bool moves, moves_on_device(step));
    if (!moves) return false;
  }
  int64_t steps = 0;
  for (size_t i = 0; i < plan_.steps.size(); i = places_[i].end) {
    if (!plan_.steps[i].is<plan::Block>()) continue;
    LATHE_ASSIGN(const int64_t here, steps_of(i, places_[i].end));
    steps = multiply_add(1, steps, here);
  }
  return steps <= kMostSteps;
}

// Of steps [first, end), blocks among them.
Result<int64_t> CaptureLimit::steps_of(size_t first, size_t end) const {
  int64_t steps = 0;
  for (size_t i = first; i < end; i = places_[i].end) {
    int64_t rounds = 1;
    const auto* block = std::get_if<plan::Block>(&plan_.steps[i].work);
    if (block && block->kind == plan::BlockKind::loop) {
      LATHE_ASSIGN(rounds, rounds_of(plan_.steps[i]));
    }
    LATHE_ASSIGN(const int64_t inside, steps_of(i + 1, places_[i].end));
    steps = multiply_add(rounds, multiply_add(1, inside, 1), steps);
  }
  return steps;
}

Result<int64_t> CaptureLimit::rounds_of(const plan::Step& loop) const {
  LATHE_ASSIGN(int64_t rounds, blocks_.sized_rounds(loop));
  if (loop.inputs[0] != plan::kNoTensor) {
    int64_t trips = 0;  // a constant
    std::memcpy(&trips, storage_.host_address(plan_.tensors[loop.inputs[0]]), sizeof(trips));
    rounds = std::min(rounds, trips);
  }
  return std::max<int64_t>(rounds, 0);
}

Result<bool> CaptureLimit::moves_on_device(const plan::Step& step) const {
  const auto& block = std::get<plan::Block>(step.work);
  const plan::Body& body = block.bodies[0];
  const bool loops = block.kind == plan::BlockKind::loop;
  const size_t controls = loops ? 2 : 0, moved = loops ? block.carried : step.outputs.size(), first = loops ? 1 : 0;
  bool all = true;
  for (size_t k = 0; k < (loops ? moved : step.inputs.size()); ++k) {
    LATHE_ASSIGN(const bool enters, moves_on_device(step.inputs[controls + k], body.params[controls + k]));
    all &= enters;
  }
  for (size_t k = 0; k < moved; ++k) {
    LATHE_ASSIGN(const bool leaves, moves_on_device(body.results[first + k], step.outputs[k]));
    all &= leaves;
    if (!loops) continue;
    LATHE_ASSIGN(const bool goes_on, moves_on_device(body.results[first + k], body.params[controls + k]));
    LATHE_ASSIGN(const bool passes, moves_on_device(step.inputs[controls + k], step.outputs[k]));
    all &= goes_on && passes;
  }
  for (size_t k = 0; k < block.scanned.size(); ++k) {
    const size_t operand = controls + moved + k;
    LATHE_ASSIGN(const bool slices,
                 slices_on_device(step.inputs[operand], body.params[operand], block.scanned[k].axis));
    all &= slices;
  }
  for (size_t k = 0; k < block.stacked.size(); ++k) {
    LATHE_ASSIGN(const bool stacks,
                 slices_on_device(step.outputs[moved + k], body.results[first + moved + k], block.stacked[k].axis));
    all &= stacks;
  }
  return all;
}

// Sizes that differ are told when the step runs.
Result<bool> CaptureLimit::moves_on_device(plan::TensorId from, plan::TensorId to) const {
  if (from == plan::kNoTensor || to == plan::kNoTensor) return true;
  LATHE_ASSIGN(const TensorArg source, shapes_.resolve(from));
  LATHE_ASSIGN(const TensorArg target, shapes_.resolve(to));
  return device_copies(source, target);
}

Result<bool> CaptureLimit::slices_on_device(plan::TensorId whole, plan::TensorId part, uint32_t axis) const {
  LATHE_ASSIGN(const TensorArg source, shapes_.resolve(whole));
  LATHE_ASSIGN(const TensorArg target, shapes_.resolve(part));
  const TensorArg slice = slice_of(source, axis, 0);
  return device_copies(slice, target) && device_copies(target, slice);
}

}  // namespace lathe
