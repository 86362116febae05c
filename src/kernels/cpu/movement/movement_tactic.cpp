// SPDX-License-Identifier: Apache-2.0
// What moves elements axis by axis and is not done by strides: kernel "movement".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/movement/movement.h"

namespace lathe::cpu {
namespace {

// By the numbers of the modes.
constexpr Movement kPads[] = {Movement::pad_constant, Movement::pad_reflect, Movement::pad_edge, Movement::pad_wrap};
static_assert(static_cast<int>(PadMode::reflect) == 1 && static_cast<int>(PadMode::wrap) == 3);

std::optional<Movement> movement_of(const Problem& problem) {
  if (problem.is(OpKind::slice)) return Movement::slice;
  if (problem.is(OpKind::tile) || problem.is(OpKind::expand)) return Movement::repeat;
  if (problem.is(OpKind::pad)) return kPads[static_cast<size_t>(problem.attrs<PadAttrs>().mode)];
  return std::nullopt;
}

}  // namespace

Matched match_movement(const Problem& problem) {
  const std::optional<Movement> mode = movement_of(problem);
  if (!mode) return refuse("no movement along axes");
  return match_root(problem, MovementParams{*mode}, all_inputs(problem), {}, {.clocks = 3});
}

}  // namespace lathe::cpu
