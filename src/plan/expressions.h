// SPDX-License-Identifier: Apache-2.0
// Where a plan has expressions: the one list that checking, encoding, renaming and binding of symbols go by.
#pragma once

#include <string_view>

#include "plan/plan.h"

namespace lathe::plan {

enum class ExprUse : uint8_t {
  dimension,
  stride,
  offset,
  buffer_size,
  left_side,
  right_side,
  count_place,
  workspace,
  launch_grid,
  launch_argument,
  trip_count,
};

// What it is, for messages, and whose: "tensor" 3.
struct ExprPlace {
  ExprUse use;
  const char* owner;
  size_t index;
};
std::string_view name_of(ExprUse use);

// Calls visit(expression, use). `step` may be const; the expressions are then, too.
template <class StepType, class Visit>
void for_each_expression_of(StepType& step, const Visit& visit) {
  for (auto& count : step.counts) visit(count.element, ExprUse::count_place);
  if (auto* block = std::get_if<Block>(&step.work)) {
    for (auto& trips : block->trips) visit(trips, ExprUse::trip_count);
    for (auto& body : block->bodies)
      for (auto& constraint : body.constraints) {
        visit(constraint.a, ExprUse::left_side);
        visit(constraint.b, ExprUse::right_side);
      }
  }
  auto* device = std::get_if<DeviceLaunches>(&step.work);
  if (!device) return;
  visit(device->workspace, ExprUse::workspace);
  for (auto& launch : device->launches) {
    for (auto& blocks : launch.grid) visit(blocks, ExprUse::launch_grid);
    for (auto& arg : launch.args) visit(arg.value, ExprUse::launch_argument);
    for (auto& map : launch.maps) {
      for (auto& dim : map.dims) visit(dim, ExprUse::launch_argument);
      for (auto& stride : map.strides) visit(stride, ExprUse::launch_argument);
    }
  }
}

// Calls visit(expression, place) with every expression of the plan, in an order that depends on the plan alone.
template <class PlanType, class Visit>
void for_each_expression(PlanType& plan, const Visit& visit) {
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    auto& tensor = plan.tensors[i];
    for (auto& dim : tensor.dims) visit(dim, ExprPlace{ExprUse::dimension, "tensor", i});
    for (auto& stride : tensor.strides) visit(stride, ExprPlace{ExprUse::stride, "tensor", i});
    visit(tensor.offset, ExprPlace{ExprUse::offset, "tensor", i});
  }
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    visit(plan.buffers[i].bytes, ExprPlace{ExprUse::buffer_size, "buffer", i});
  for (size_t i = 0; i < plan.constraints.size(); ++i) {
    visit(plan.constraints[i].a, ExprPlace{ExprUse::left_side, "constraint", i});
    visit(plan.constraints[i].b, ExprPlace{ExprUse::right_side, "constraint", i});
  }
  for (size_t i = 0; i < plan.steps.size(); ++i)
    for_each_expression_of(plan.steps[i], [&](auto& expression, ExprUse use) {
      visit(expression, ExprPlace{use, "step", i});
    });
}

}  // namespace lathe::plan
