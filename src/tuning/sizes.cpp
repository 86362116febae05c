// SPDX-License-Identifier: Apache-2.0
#include "tuning/sizes.h"

#include <algorithm>

namespace lathe {
namespace {

bool has_value(const Shape& shape, std::span<const int64_t> symbols, Dims& values) {
  values.clear();
  for (const Expr& each : shape) {
    const std::optional<int64_t> value = each.evaluate(symbols);
    if (!value) return false;
    values.push_back(*value);
  }
  return true;
}

bool set_sizes(std::vector<Operand>& operands, std::span<const int64_t> symbols) {
  return std::ranges::all_of(operands, [&](Operand& operand) {
    return has_value(operand.dims, symbols, operand.opt_dims) &&
           has_value(operand.strides, symbols, operand.opt_strides) &&
           std::ranges::all_of(operand.opt_dims, [](int64_t dim) { return dim > 0; }) &&
           set_sizes(operand.operands, symbols);
  });
}

}  // namespace

std::optional<Problem> with_symbols(const Problem& problem, std::span<const int64_t> symbols) {
  Problem other = problem;
  other.symbols.assign(symbols.begin(), symbols.end());
  for (auto* list : {&other.inputs, &other.operands, &other.outputs})
    if (!set_sizes(*list, symbols)) return std::nullopt;
  for (InlinedStep& step : other.inlined) {
    std::optional<Problem> own = with_symbols(step.problem, symbols);
    if (!own) return std::nullopt;
    step.problem = *std::move(own);
  }
  return other;
}

std::optional<Problem> with_rows(const Problem& problem, const Expr& rows, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 32;
  std::vector<int64_t> symbols = problem.symbols;
  std::vector<SymbolId> own;
  rows.collect_symbols(own);
  if (own.empty()) return std::nullopt;
  int64_t& size = symbols[own.back()];
  for (size = 1; rows.evaluate(symbols).value_or(0) < count; size *= 2)
    if (size >= kMost) return std::nullopt;
  return with_symbols(problem, symbols);
}

}  // namespace lathe
