// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/collapsed_tactic.h"

#include <algorithm>
#include <cstdlib>

namespace lathe::cuda::gemm {

void CollapsedDim::prepend(const StridedAxis& axis) {
  if (axis.extent == Expr(1)) return;
  if (!axes.empty() && axis.stride == axes.front().stride * axes.front().extent)
    axes.front().extent *= axis.extent;
  else
    axes.insert(axes.begin(), axis);
}

CollapsedOperand::CollapsedOperand(const Operand& operand) : whole(operand) {
  if (operand.reassociation.empty()) return;
  whole.reassociation.clear();
  whole.dims = whole_dims(operand);
  whole.opt_dims = opt_whole_dims(operand);
  whole.strides.clear(), whole.opt_strides.clear();
  size_t first = 0;
  for (const size_t count : operand.reassociation) {
    CollapsedDim& dim = dims.emplace_back();
    for (size_t i = first + count; i-- > first;) dim.prepend({operand.dims[i], operand.strides[i]});
    size_t last = first + count;  // of those that have more than one element
    while (last > first && operand.dims[last - 1] == Expr(1)) --last;
    whole.strides.push_back(last > first ? operand.strides[last - 1] : Expr(0));
    whole.opt_strides.push_back(last > first ? operand.opt_strides[last - 1] : 0);
    first += count;
  }
}

bool CollapsedOperand::has_several_strides() const {
  return std::any_of(dims.begin(), dims.end(), [](const CollapsedDim& dim) { return dim.axes.size() > 1; });
}

namespace {

// Loaders count the copies between a tile's rows in 32 bits.
bool is_within_reach(const std::vector<StridedAxis>& rows, int64_t width) {
  constexpr int64_t kMostRows = 256, kMost = int64_t{1} << 30;
  int64_t inner = 1;  // rows of the axes inside
  for (auto axis = rows.rbegin(); axis != rows.rend(); ++axis) {
    const int64_t extent = axis->extent.as_constant().value_or(kMostRows);
    const int64_t of_tile = std::min(extent, kMostRows / inner + 2);
    if (std::abs(axis->stride.as_constant().value_or(0)) / width > kMost / of_tile) return false;
    inner = std::min(inner * std::max<int64_t>(extent, 1), kMostRows);
  }
  return true;
}

}  // namespace

std::optional<std::string> describe_collapsed(const Operand& operand, CollapsedDim rows, CollapsedDim columns,
                                              const Shape& batch_strides, Matrix& out) {
  if (rows.axes.empty()) rows.axes = {{1, 0}};
  if (columns.axes.empty() || columns.axes.back().stride != Expr(1)) return "collapsed columns that are not contiguous";
  Shape multiples = batch_strides;
  multiples.push_back(operand.offset);
  for (const StridedAxis& axis : rows.axes) multiples.push_back(axis.stride);
  for (size_t i = 0; i + 1 < columns.axes.size(); ++i) multiples.push_back(columns.axes[i].stride);
  // No copy crosses from one run of columns to the next.
  for (size_t i = 1; i < columns.axes.size(); ++i) multiples.push_back(columns.axes[i].extent);
  out.major = Major::k;
  out.batch_strides = batch_strides;
  out.pitch = rows.axes.back().stride;
  out.width = copy_width(operand.dtype, multiples);
  out.rows = std::move(rows.axes), out.columns = std::move(columns.axes);
  constexpr size_t kLeastBytes = 8;
  if (static_cast<size_t>(out.width) * size_of(operand.dtype) < kLeastBytes)
    return "collapsed columns in runs that no vector fits";
  if (!is_within_reach(out.rows, out.width)) return "rows that lie too far apart";
  return std::nullopt;
}

std::string collapsed_loader(Source& source, const Operand& operand, const Matrix& matrix, std::string_view offset) {
  Operand view = operand;
  view.dims.clear(), view.strides.clear();
  for (const auto* axes : {&matrix.rows, &matrix.columns})
    for (const StridedAxis& axis : *axes) view.dims.push_back(axis.extent), view.strides.push_back(axis.stride);
  source.input(0, view, "A");
  return fmt::format(
      "gemm::CollapsedLoader<A, {}, Tile::PanelA, Tile::kThreads, {}> a;\n"
      "  a.start(A_, A_.data{}, block.row, m, block.k, k);\n  ",
      matrix.rows.size(), matrix.width, offset);
}

}  // namespace lathe::cuda::gemm
