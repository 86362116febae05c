// SPDX-License-Identifier: Apache-2.0
// Every op on all its element types, a thread per element, line or result: what runs when no faster kernel does.
// Results are those of the plain evaluation.
#include <algorithm>
#include <cmath>

#include "kernels/axes_tactic.h"
#include "kernels/cuda/collapse.h"
#include "kernels/cuda/generic/op_source.h"
#include "ops/moved_bits.h"

namespace lathe::cuda {
namespace {

const GenericOp* find_generic(OpKind kind) {
  for (const auto group :
       {pointwise_ops(), movement_ops(), indexing_ops(), row_ops(), window_ops(), contraction_ops(), sampling_ops()})
    for (const GenericOp& op : group)
      if (op.kind == kind) return &op;
  return nullptr;
}

Result<Emission> emit_op(const Problem& problem) {
  if (!problem.attributes) return emit_pointwise_program(problem);
  const OpKind kind = problem.attributes->kind();
  const OpInfo& info = op_info(kind);
  if (info.traits & kDataDependent) return fail(ErrorCode::no_tactic, "the size of its result depends on its data");
  const GenericOp* op = find_generic(kind);
  if (!op) return fail(ErrorCode::no_tactic, "{} has no device code", info.name);
  if (!op->takes_program && !problem.program.is_identity())
    return fail(ErrorCode::no_tactic, "nothing can be fused to {} here", info.name);
  LATHE_ASSIGN(Emission emission, op->emit(problem));
  for (const SourceLaunch& each : emission.launches)
    if (each.launch.args.size() > kMaxLaunchArgs)
      return fail(ErrorCode::no_tactic, "it needs {} kernel arguments, {} are possible", each.launch.args.size(),
                  kMaxLaunchArgs);
  return emission;
}

bool picks_elements(const Problem& problem) {
  return problem.is(OpKind::gather) || problem.is(OpKind::gather_elements) || problem.is(OpKind::gather_nd);
}

// Of the root, and of the program's operands. A product's multiplications follow from the sizes of what it reads and
// writes, each of which has two of its three extents.
double elements_read(const Problem& problem, double results) {
  double elements = results;
  for (const Operand& input : problem.inputs)
    if (!input.omitted && !picks_elements(problem))
      elements = std::max(elements, static_cast<double>(opt_volume(input)));
  if (problem.attributes && op_info(problem.attributes->kind()).traits & kHeavy && problem.inputs.size() > 1) {
    const double read = static_cast<double>(opt_volume(problem.inputs[0])) * opt_volume(problem.inputs[1]);
    elements = std::max(elements, std::sqrt(read * results));
  }
  if (problem.is(OpKind::topk)) {  // each of the k is looked for in the whole line, by comparing two elements
    const int axis = axis_from_start(problem.attrs<TopkAttrs>().axis, problem.outputs[0]);
    elements *= 2 * static_cast<double>(problem.outputs[0].opt_dims[static_cast<size_t>(axis)]);
  }
  return elements + results * static_cast<double>(problem.operands.size());
}

// Microseconds: threads go through their elements one after the other, and wait for each.
double predicted_us(const Problem& problem, const Emission& emission) {
  constexpr double kElementClocks = 3000;  // most ops visit an element more than once
  const Target& target = problem.target;
  double results = 0, us = 0;
  for (const Operand& output : problem.outputs) results += static_cast<double>(opt_volume(output));
  const double elements = elements_read(problem, results);
  for (const SourceLaunch& each : emission.launches) {
    double threads = each.launch.block;
    for (const Expr& blocks : each.launch.grid)
      threads *= static_cast<double>(blocks.evaluate(problem.symbols).value_or(1));
    threads = std::clamp(threads, 1.0, std::max(results, 1.0));  // some have nothing to do
    const double waves = std::max(1.0, threads / static_cast<double>(target.busy_threads()));
    us += target.launch_us + waves * std::max(1.0, elements / threads) * kElementClocks / target.clock_mhz;
  }
  return us;
}

}  // namespace

Matched match_generic(const Problem& problem) {
  const bool moves = problem.attributes && problem.program.is_identity() && moves_bits(*problem.attributes);
  const Features supported{.further_results = true, .fill = true, .mixed_factors = true, .float8 = moves};
  if (auto reason = unsupported_feature(problem, supported)) return refuse(*std::move(reason));
  // A step for each by a better kernel takes less time than both here.
  if (!problem.attributes && problem.program.outputs.size() > 1) return refuse("further results of an expression");
  Result<Emission> emission = emit_op(problem);
  if (!emission) return refuse(emission.error().message);
  const double us = predicted_us(problem, *emission);
  return match_one(*std::move(emission), us);
}

}  // namespace lathe::cuda
