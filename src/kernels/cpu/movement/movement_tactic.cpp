// SPDX-License-Identifier: Apache-2.0
// What moves elements axis by axis and is not done by strides: kernel "movement".
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/movement/movement.h"

namespace lathe::cpu {
namespace {

std::optional<Movement> movement_of(const Problem& problem) {
  if (!problem.attributes) return std::nullopt;
  switch (problem.attributes->kind()) {
    case OpKind::slice:
      return Movement::slice;
    case OpKind::tile:
    case OpKind::expand:
      return Movement::repeat;
    case OpKind::pad:
      break;
    default:
      return std::nullopt;
  }
  switch (problem.attrs<PadAttrs>().mode) {
    case PadMode::constant:
      return Movement::pad_constant;
    case PadMode::reflect:
      return Movement::pad_reflect;
    case PadMode::edge:
      return Movement::pad_edge;
    case PadMode::wrap:
      break;
  }
  return Movement::pad_wrap;
}

}  // namespace

Matched match_movement(const Problem& problem) {
  const std::optional<Movement> mode = movement_of(problem);
  if (!mode) return refuse("no movement along axes");
  return match_root(problem, MovementParams{*mode}, all_inputs(problem), {}, {.clocks = 3});
}

}  // namespace lathe::cpu
