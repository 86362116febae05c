// SPDX-License-Identifier: Apache-2.0
#include "tuning/checked_columns.h"

#include <algorithm>
#include <numeric>

#include "tuning/work.h"

namespace lathe {
namespace {

constexpr int64_t kLeastColumns = 2048;  // two tiles at each end, and each residue of a tile between them

// Whether each element of the result follows from columns of the operands alone, of which nothing is known beyond that.
bool has_columns(const Problem& problem) {
  if (!problem.is(OpKind::matmul) || problem.inputs.size() != 2 || !problem.inlined.empty()) return false;
  if (opt_whole_dims(problem.inputs[0]).size() < 2 || opt_whole_dims(problem.inputs[1]).size() < 2) return false;
  const Operand &b = problem.inputs[1], &output = problem.outputs[0];
  const auto goes_beside = [&](const Operand& other) {
    return !other.padding && !other.normalization && other.opt_dims == output.opt_dims;
  };
  return !b.normalization && !b.pages && !is_collapsed(b) && std::ranges::all_of(problem.operands, goes_beside) &&
         std::ranges::all_of(problem.outputs, goes_beside) &&
         (b.is_scaled_by_blocks() || std::ranges::all_of(b.operands, [&](const Operand& operand) {
            return !operand.padding && operand.opt_dims == b.opt_dims;
          }));
}

}  // namespace

std::pair<size_t, size_t> parts_of(const Operand& operand, size_t at) {
  if (operand.reassociation.empty()) return {at, at + 1};
  const auto first = operand.reassociation.begin(), last = first + static_cast<ptrdiff_t>(at);
  const size_t begin = std::accumulate(first, last, size_t{0});
  return {begin, begin + *last};
}

std::vector<int64_t> checked_columns(const Problem& problem, double most_products) {
  if (!has_columns(problem)) return {};
  const Dims a = opt_whole_dims(problem.inputs[0]), output = opt_whole_dims(problem.outputs[0]);
  const bool is_transposed = problem.attrs<MatmulAttrs>().transpose_a;
  const int64_t columns = output.back(), depth = a[a.size() - (is_transposed ? 2 : 1)];
  const double products = volume_of(output) * static_cast<double>(depth) * (problem.pairs ? 2 : 1);
  const int64_t most =
      std::max(kLeastColumns, static_cast<int64_t>(static_cast<double>(columns) * most_products / products));
  if (products <= most_products || most >= columns) return {};
  int64_t step = 2 * columns / most + 1;
  while (std::gcd(step, 2 * 3 * 5 * 7) != 1) ++step;
  const int64_t end = (most - columns / step) / 2;  // at each end
  std::vector<int64_t> checked;
  for (int64_t i = 0; i < columns; i += i < end || i >= columns - end ? 1 : std::min(step, columns - end - i))
    checked.push_back(i);
  return checked;
}

}  // namespace lathe
