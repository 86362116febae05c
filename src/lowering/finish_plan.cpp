// SPDX-License-Identifier: Apache-2.0
#include "lowering/finish_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lowering/choices_by_size.h"
#include "lowering/join_launches.h"
#include "lowering/sections.h"
#include "plan/blocks.h"
#include "plan/expressions.h"

namespace lathe {

using plan::StorageKind;
using plan::TensorId;

namespace {

// Passes fold most symbols away; an input whose values no expression needs is no shape input. A size that no step
// computes any more constrains nothing.
void drop_unused_symbols(plan::Plan& plan) {
  std::vector<SymbolId> used;
  std::vector<Constraint> constraints = std::exchange(plan.constraints, {});
  plan::for_each_expression(std::as_const(plan),
                            [&](const Expr& expr, const plan::ExprPlace&) { expr.collect_symbols(used); });
  for (const plan::Step& step : plan.steps)
    for (const plan::StepCount& count : step.counts) used.push_back(count.symbol);
  for (Constraint& constraint : constraints) {
    const std::vector<SymbolId> own = symbols_of(constraint);
    const bool is_known = std::all_of(own.begin(), own.end(), [&](SymbolId id) {
      return plan.symbols[id].source != SymbolSource::computed || std::find(used.begin(), used.end(), id) != used.end();
    });
    if (!is_known) continue;
    used.insert(used.end(), own.begin(), own.end());
    plan.constraints.push_back(std::move(constraint));
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  std::vector<Expr> renamed(plan.symbols.size());
  std::vector<Symbol> symbols;
  std::vector<plan::Profile> profiles(plan.profiles.size());
  for (SymbolId id : used) {
    renamed[id] = Expr::symbol(static_cast<SymbolId>(symbols.size()));
    symbols.push_back(plan.symbols[id]);
    for (size_t p = 0; p < profiles.size(); ++p) profiles[p].symbols.push_back(plan.profiles[p].symbols[id]);
  }
  plan::for_each_expression(plan, [&](Expr& expr, const plan::ExprPlace&) { expr = expr.substitute(renamed); });
  for (plan::Step& step : plan.steps)
    for (plan::StepCount& count : step.counts) count.symbol = *renamed[count.symbol].as_symbol();
  plan.symbols = std::move(symbols);
  plan.profiles = std::move(profiles);
}

// What a block's bodies begin with and leave.
std::vector<TensorId> operands_of_bodies(const plan::Step& step) {
  std::vector<TensorId> ids;
  const auto* block = std::get_if<plan::Block>(&step.work);
  for (size_t i = 0; block && i < block->bodies.size(); ++i)
    for (const auto* list : {&block->bodies[i].params, &block->bodies[i].results})
      std::ranges::copy_if(*list, std::back_inserter(ids), [](TensorId id) { return id != plan::kNoTensor; });
  return ids;
}

// Of blocks, which are among what is left of the steps, the last one first.
void shorten_bodies(std::vector<plan::Step>& left, const std::vector<bool>& is_dropped) {
  size_t next = 0;  // of the steps before any was dropped
  for (auto step = left.rbegin(); step != left.rend(); ++step) {
    while (is_dropped[next]) ++next;
    size_t at = ++next;
    auto* block = std::get_if<plan::Block>(&step->work);
    for (size_t i = 0; block && i < block->bodies.size(); ++i) {
      uint32_t& steps = block->bodies[i].steps;
      const auto begin = is_dropped.begin() + static_cast<ptrdiff_t>(at), end = begin + steps;
      at += steps;
      steps -= static_cast<uint32_t>(std::count(begin, end, true));
    }
  }
}

// Steps whose results nothing reads, such as the shapes that reshapes and expansions have as operands: their kernels
// take sizes from the plan. What finds the size of a result stays, for the plan's symbols depend on it.
void drop_unread_steps(plan::Plan& plan, BuildReport& report) {
  const auto storage = [&](TensorId id) { return std::pair(plan.tensors[id].storage, plan.tensors[id].index); };
  std::set<std::pair<StorageKind, uint32_t>> read;
  std::vector<plan::Step> steps;
  std::vector<RegionReport> reports;
  for (const plan::Step& step : plan.steps)
    for (const TensorId id : operands_of_bodies(step)) read.insert(storage(id));
  std::vector<bool> is_dropped(plan.steps.size());
  for (size_t i = plan.steps.size(); i-- > 0;) {
    plan::Step& step = plan.steps[i];
    const bool is_read = std::any_of(step.outputs.begin(), step.outputs.end(), [&](TensorId id) {
      return id != plan::kNoTensor && (plan.tensors[id].storage == StorageKind::binding || read.contains(storage(id)) ||
                                       depends_on_data(plan.tensors[id].dims, plan.symbols));
    });
    is_dropped[i] = !is_read && step.counts.empty() && !step.is<plan::Block>();
    if (is_dropped[i]) continue;
    for (const TensorId id : step.inputs)
      if (id != plan::kNoTensor) read.insert(storage(id));
    steps.push_back(std::move(step));
    reports.push_back(std::move(report.regions[i]));
  }
  shorten_bodies(steps, is_dropped);
  plan.steps.assign(std::make_move_iterator(steps.rbegin()), std::make_move_iterator(steps.rend()));
  report.regions.assign(std::make_move_iterator(reports.rbegin()), std::make_move_iterator(reports.rend()));
}

// Operands of a block, and what its bodies begin with and leave, live as long as it runs. So does what is there before
// a block and read inside: each round of a loop reads it again. What auxiliary streams touch lives as long as its
// section runs: what the main one does meanwhile may come before or behind it.
Result<> set_lifetimes(plan::Plan& plan) {
  LATHE_ASSIGN(const std::vector<plan::StepPlace> places, plan::find_places(plan.steps));
  std::vector<bool> touched(plan.buffers.size());
  const auto touch = [&](TensorId id, uint32_t first, uint32_t last) {
    if (id == plan::kNoTensor || plan.tensors[id].storage != StorageKind::arena) return;
    plan::Buffer& buffer = plan.buffers[plan.tensors[id].index];
    buffer.first = touched[plan.tensors[id].index] ? std::min(buffer.first, first) : first;
    buffer.last = std::max(buffer.last, last);
    touched[plan.tensors[id].index] = true;
  };
  for (uint32_t i = 0; i < plan.steps.size(); ++i) {
    const uint32_t last = places[i].end - 1;
    for (const auto* list : {&plan.steps[i].inputs, &plan.steps[i].outputs})
      for (const TensorId id : *list) touch(id, i, last);
    for (const TensorId id : operands_of_bodies(plan.steps[i])) touch(id, i, last);
  }
  for (const plan::ParallelSection& section : plan.sections)
    for (uint32_t i = section.first; i < section.end; ++i)
      for (const auto* list : {&plan.steps[i].inputs, &plan.steps[i].outputs})
        for (const TensorId id : *list)
          if (plan.steps[i].stream > 0) touch(id, section.first, section.end - 1);
  for (uint32_t i = static_cast<uint32_t>(plan.steps.size()); i-- > 0;)  // from the inside to the outside
    for (plan::Buffer& buffer : plan.buffers)
      if (plan.steps[i].is<plan::Block>() && buffer.first < i && buffer.last > i)
        buffer.last = std::max(buffer.last, places[i].end - 1);
  return {};
}

void note_orders(BuiltPlan& built) {
  std::vector<plan::ConstantOrder> orders;
  for (const auto& [constant, order] : built.orders) orders.push_back(order);
  if (!orders.empty()) built.plan.metadata.emplace_back(plan::kOrdersKey, plan::orders_text(orders));
}

}  // namespace

Result<> finish_plan(BuiltPlan& built, const BuildOptions& options, PlanCode& code) {
  plan::Plan& plan = built.plan;
  drop_unread_steps(plan, built.report);
  LATHE_TRY(join_launches(built, options, code));
  LATHE_TRY(add_forms(built, code));
  LATHE_TRY(find_sections(plan, built.report, options.tuner.target, options.auxiliary_streams));
  LATHE_TRY(set_lifetimes(plan));
  drop_unused_symbols(plan);
  for (const Symbol& symbol : plan.symbols)
    if (symbol.source == SymbolSource::input_value) plan.bindings[symbol.tensor].is_shape_tensor = true;
  note_orders(built);
  built.report.weights_bytes = plan.weights_bytes();
  return {};
}

}  // namespace lathe
