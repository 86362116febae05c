// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/index_space.h"

#include <algorithm>

#include "kernels/cuda/source.h"

namespace lathe::cuda {

IndexSpace::IndexSpace(const Operand& whole) {
  for (size_t i = 0; i < whole.dims.size(); ++i)
    axes_.push_back({whole.dims[i], whole.opt_dims[i], false, {whole.strides[i]}, {whole.opt_strides[i]}});
  starts_.push_back({whole.dtype, whole.offset});
}

size_t IndexSpace::add(const Operand& operand) {
  const Operand whole = broadcast(operand, view(0));
  for (size_t i = 0; i < axes_.size(); ++i) {
    axes_[i].strides.push_back(whole.strides[i]);
    axes_[i].opt_strides.push_back(whole.opt_strides[i]);
  }
  starts_.push_back({operand.dtype, operand.offset});
  return starts_.size() - 1;
}

size_t IndexSpace::add_kept(const Operand& operand) {
  Operand kept;
  for (const Axis& axis : axes_)
    if (!axis.reduced) kept.dims.push_back(axis.extent), kept.opt_dims.push_back(axis.opt_extent);
  const Operand whole = broadcast(operand, kept);
  size_t dim = 0;
  for (Axis& axis : axes_) {
    axis.strides.push_back(axis.reduced ? Expr(0) : whole.strides[dim]);
    axis.opt_strides.push_back(axis.reduced ? 0 : whole.opt_strides[dim]);
    if (!axis.reduced) ++dim;
  }
  starts_.push_back({operand.dtype, operand.offset});
  return starts_.size() - 1;
}

void IndexSpace::split(size_t dim, int64_t groups) {
  Axis inner = axes_[dim];
  Axis& outer = axes_[dim];
  inner.extent = floordiv(inner.extent, groups);
  inner.opt_extent /= groups;
  inner.reduced = true;
  outer.extent = groups;
  outer.opt_extent = groups;
  for (size_t k = 0; k < starts_.size(); ++k) {
    outer.strides[k] = outer.strides[k] * inner.extent;
    outer.opt_strides[k] *= inner.opt_extent;
  }
  axes_.insert(axes_.begin() + static_cast<ptrdiff_t>(dim) + 1, std::move(inner));
}

int64_t IndexSpace::pace(const Axis& axis) { return axis.opt_strides[0]; }

bool IndexSpace::can_merge(const Axis& outer, const Axis& inner) const {
  if (outer.reduced != inner.reduced) return false;
  for (size_t k = 0; k < starts_.size(); ++k)
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  return true;
}

void IndexSpace::simplify() {
  std::erase_if(axes_, [](const Axis& axis) { return axis.extent == Expr(1); });
  std::stable_sort(axes_.begin(), axes_.end(),
                   [](const Axis& a, const Axis& b) { return a.reduced != b.reduced ? b.reduced : pace(a) > pace(b); });
  for (size_t i = axes_.size(); i-- > 1;) {
    if (!can_merge(axes_[i - 1], axes_[i])) continue;
    axes_[i].extent = axes_[i - 1].extent * axes_[i].extent;
    axes_[i].opt_extent *= axes_[i - 1].opt_extent;
    axes_.erase(axes_.begin() + static_cast<ptrdiff_t>(i) - 1);
  }
  const auto unit = [&](bool reduced) {
    return Axis{1, 1, reduced, Shape(starts_.size(), Expr(0)), Dims(starts_.size(), 0)};
  };
  if (kept() == 0) axes_.insert(axes_.begin(), unit(false));
  if (kept() == rank()) axes_.push_back(unit(true));
}

int IndexSpace::kept() const {
  return static_cast<int>(std::count_if(axes_.begin(), axes_.end(), [](const Axis& axis) { return !axis.reduced; }));
}

Expr IndexSpace::volume(int begin, int end) const {
  Expr product = 1;
  for (int i = begin; i < end; ++i) product *= extent(i);
  return product;
}

int64_t IndexSpace::opt_volume(int begin, int end) const {
  int64_t product = 1;
  for (int i = begin; i < end; ++i) product *= opt_extent(i);
  return product;
}

Operand IndexSpace::view(size_t index, int rank) const {
  Operand operand;
  operand.dtype = starts_[index].dtype;
  operand.offset = starts_[index].offset;
  for (int i = 0; i < rank; ++i) {
    const Axis& axis = axes_[static_cast<size_t>(i)];
    operand.dims.push_back(axis.extent);
    operand.opt_dims.push_back(axis.opt_extent);
    operand.strides.push_back(axis.strides[index]);
    operand.opt_strides.push_back(axis.opt_strides[index]);
  }
  return operand;
}

Operand IndexSpace::view(size_t index) const { return view(index, rank()); }
Operand IndexSpace::kept_view(size_t index) const { return view(index, kept()); }

int IndexSpace::vector_along(int dim) const {
  const Operand whole = view(0);
  if (unit_dim(whole) != dim) return 1;
  int width = vector_width(whole);
  while (width > 1 && mod(extent(dim), width) != Expr(0)) width /= 2;
  return width;
}

}  // namespace lathe::cuda
