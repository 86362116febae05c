// SPDX-License-Identifier: Apache-2.0
#include "lowering/finish_plan.h"

#include <algorithm>
#include <set>
#include <utility>

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

// Steps whose results nothing reads, such as the shapes that reshapes and expansions have as operands: their kernels
// take sizes from the plan. What finds the size of a result stays, for the plan's symbols depend on it.
void drop_unread_steps(plan::Plan& plan, BuildReport& report) {
  const auto storage = [&](TensorId id) { return std::pair(plan.tensors[id].storage, plan.tensors[id].index); };
  std::set<std::pair<StorageKind, uint32_t>> read;
  std::vector<plan::Step> steps;
  std::vector<RegionReport> reports;
  for (size_t i = plan.steps.size(); i-- > 0;) {
    plan::Step& step = plan.steps[i];
    const bool is_read = std::any_of(step.outputs.begin(), step.outputs.end(), [&](TensorId id) {
      return id != plan::kNoTensor && (plan.tensors[id].storage == StorageKind::binding || read.contains(storage(id)) ||
                                       depends_on_data(plan.tensors[id].dims, plan.symbols));
    });
    if (!is_read && step.counts.empty()) continue;
    for (const TensorId id : step.inputs)
      if (id != plan::kNoTensor) read.insert(storage(id));
    steps.push_back(std::move(step));
    reports.push_back(std::move(report.regions[i]));
  }
  plan.steps.assign(std::make_move_iterator(steps.rbegin()), std::make_move_iterator(steps.rend()));
  report.regions.assign(std::make_move_iterator(reports.rbegin()), std::make_move_iterator(reports.rend()));
}

void set_lifetimes(plan::Plan& plan) {
  std::vector<bool> touched(plan.buffers.size());
  for (uint32_t i = 0; i < plan.steps.size(); ++i)
    for (const auto* list : {&plan.steps[i].inputs, &plan.steps[i].outputs})
      for (const TensorId id : *list) {
        if (id == plan::kNoTensor || plan.tensors[id].storage != StorageKind::arena) continue;
        plan::Buffer& buffer = plan.buffers[plan.tensors[id].index];
        if (!touched[plan.tensors[id].index]) buffer.first = i;
        touched[plan.tensors[id].index] = true;
        buffer.last = i;
      }
}

}  // namespace

void finish_plan(BuiltPlan& built) {
  plan::Plan& plan = built.plan;
  drop_unread_steps(plan, built.report);
  set_lifetimes(plan);
  drop_unused_symbols(plan);
  for (const Symbol& symbol : plan.symbols)
    if (symbol.source == SymbolSource::input_value) plan.bindings[symbol.tensor].is_shape_tensor = true;
  plan.weights = built.weights;
  for (plan::Constant& constant : plan.constants)
    constant.digest = digest_of(plan.weights.subspan(constant.offset, constant.bytes));
  built.report.weights_bytes = built.weights.size();
}

}  // namespace lathe
