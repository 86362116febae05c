// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/row_input.h"

namespace lathe::cuda {

void add_prologue_operands(const Problem& problem, IndexSpace& space) {
  for (const Operand& operand : problem.inputs[0].operands) space.add(operand);
}

std::string declare_row_input(Source& source, const Problem& problem, const IndexSpace& space) {
  source.input(0, space.view(0), "X");
  const Operand& x = problem.inputs[0];
  if (!x.is_computed()) return "X_";
  const size_t first = space.tensors() - x.operands.size();
  std::vector<Operand> views = {space.view(0)};
  for (size_t k = first; k < space.tensors(); ++k) views.push_back(space.view(k));
  source.prologue(x.program, views, first - problem.outputs.size());  // tensors behind the first
  return "Computed<X, Prologue>{X_, prologue_}";
}

std::optional<std::string> refuse_row_problem(const Problem& problem, Features further) {
  further.permuted_inputs = further.prologues = 1, further.float8 = true;
  if (auto reason = unsupported_feature(problem, further)) return reason;
  if (problem.inputs[0].rank() == 0) return "a scalar";
  return std::nullopt;
}

std::optional<std::string> refuse_row_input(const Problem& problem) {
  if (!problem.inputs[0].is_computed()) return std::nullopt;
  const DType dtype = problem.inputs[0].dtype;
  const bool is_float = is_short_float(dtype);
  if (is_float || (is_integer(dtype) && size_of(dtype) <= 2)) return std::nullopt;
  return fmt::format("a program on elements of type {}", name_of(dtype));
}

}  // namespace lathe::cuda
