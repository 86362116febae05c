// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/prologue_tactic.h"

#include "kernels/cuda/collapse.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda::gemm {
namespace {

// Input 0 and the prologue's operands with as few dimensions for the rows as possible, and the column.
std::vector<Operand> row_views(const Problem& problem, size_t column) {
  std::vector<Operand> tensors = {problem.inputs[0]};
  for (const Operand& operand : problem.inputs[0].operands) tensors.push_back(broadcast(operand, problem.inputs[0]));
  std::vector<OperandDim> columns;
  for (Operand& tensor : tensors) columns.push_back(tensor.take_out_dim(column));
  std::vector<Operand> views = collapse(std::move(tensors));
  for (size_t k = 0; k < views.size(); ++k) views[k].append_dim(columns[k]);
  return views;
}

}  // namespace

std::optional<std::string> refuse_prologue(const Problem& problem, size_t column) {
  const Operand& x = problem.inputs[0];
  if (!x.is_computed()) return std::nullopt;
  if (!is_short_float(x.dtype)) return fmt::format("a program on elements of type {}", name_of(x.dtype));
  if (x.strides[column] != Expr(1)) return "a program on elements that are not neighbours";
  return std::nullopt;
}

std::string left_loader(Source& source, const Problem& problem, size_t column, const DenseOperand& operand,
                        const TileShape& tile, Emission& emission) {
  if (!problem.inputs[0].is_computed()) return dense_loader(source, operand, tile);
  const std::vector<Operand> views = row_views(problem, column);
  const size_t first = emission.inputs.size();
  add_prologue_inputs(problem, 0, emission);
  source.prologue(problem.inputs[0].program, views, first);
  source.list("PrologueRows", Shape(views[0].dims.begin(), views[0].dims.end() - 1));
  return fmt::format(
      "gemm::ProgramLoader<{}, Prologue, PrologueRows> a(prologue_, PrologueRows_);\n"
      "  a.start_program(block.row, {}, block.k, k);\n"
      "  gemm::start_dense<false>(a, {});\n  ",
      dense_loader_type(operand, tile), source.number(operand.outer), dense_loader_start(source, operand));
}

}  // namespace lathe::cuda::gemm
