// SPDX-License-Identifier: Apache-2.0
// choose on the device, where one dimension differs.
#include "kernels/cuda/generic/data_dependent_ops.h"
#include "kernels/cuda/generic/op_source.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kHeader = "generic/choose.cuh";

std::optional<size_t> only_difference(const Problem& problem) {
  std::optional<size_t> found;
  for (size_t d = 0; d < problem.inputs[1].dims.size(); ++d) {
    if (problem.inputs[1].dims[d] == problem.inputs[2].dims[d]) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

}  // namespace

DataDependentMatched match_choice(const Problem& problem) {
  if (!problem.is(OpKind::choose)) return refuse("no choice between two tensors");
  if (!problem.has_input(1) || !problem.has_input(2)) return refuse("there is one operand alone");
  const std::optional<size_t> difference = only_difference(problem);
  if (!difference) return refuse("the two differ in several dimensions, or in none");
  DataDependentEmission emission;
  emission.output_dim = *difference;
  const Expr yes = problem.inputs[1].dims[emission.output_dim], no = problem.inputs[2].dims[emission.output_dim];
  emission.count = max(yes, no);
  emission.found = {emission.count + 1};  // a count is no larger than its list
  {
    OpSource source(kHeader, problem, emission.find);
    const std::string condition = source.input(0);
    source.source().output(0, list_operand(emission.found[0]), "List");
    const auto number = [&](const Expr& expr) { return source.source().number(expr); };
    source.finish_blocks(fmt::format("choose_count({}, {}, {}, reinterpret_cast<long*>(List_.data) + {});", condition,
                                     number(yes), number(no), number(emission.count)),
                         1, 32, 0);
  }
  OpSource source(kHeader, problem, emission.write);
  const std::string condition = source.input(0), a = source.input(1, true), b = source.input(2, true);
  source.finish(fmt::format("choose({}, {}, {}, {});", condition, a, b, source.output(0, true)),
                volume(problem.outputs[0].dims));
  return emission;
}

}  // namespace lathe::cuda
