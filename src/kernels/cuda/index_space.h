// SPDX-License-Identifier: Apache-2.0
// The dimensions of a problem in an order and number that suits a kernel: those that count rows ("kept") first, then
// those that a row consists of ("reduced"); neighbours are merged where every tensor can step over both at once.
#pragma once

#include <span>

#include "tuning/problem.h"

namespace lathe::cuda {

class IndexSpace {
 public:
  // The dims of `whole`, which becomes tensor 0. All are kept.
  explicit IndexSpace(const Operand& whole);
  // A tensor that broadcasts to the dims. To be called before they are changed; returns its index.
  size_t add(const Operand& operand);
  // A tensor whose dims are the kept ones only (the result of a reduction without keepdims).
  size_t add_kept(const Operand& operand);
  void reduce(size_t dim) { axes_[dim].reduced = true; }
  // Splits a dimension of extent g * k into g kept and k reduced ones.
  void split(size_t dim, int64_t groups);
  // Drops dimensions of extent 1, orders and merges. There is a kept and a reduced dimension at least, of extent 1 if
  // need be.
  void simplify();

  size_t tensors() const { return starts_.size(); }
  int rank() const { return static_cast<int>(axes_.size()); }
  int kept() const;
  Expr rows() const { return volume(0, kept()); }
  Expr length() const { return volume(kept(), rank()); }  // of a row
  int64_t opt_rows() const { return opt_volume(0, kept()); }
  int64_t opt_length() const { return opt_volume(kept(), rank()); }
  const Expr& extent(int dim) const { return axes_[static_cast<size_t>(dim)].extent; }
  int64_t opt_extent(int dim) const { return axes_[static_cast<size_t>(dim)].opt_extent; }
  // Tensor `index` in these dimensions, or in the kept ones only.
  Operand view(size_t index) const;
  Operand kept_view(size_t index) const;
  // The longest vector along `dim` that divides its extent and that tensor 0 can be read by.
  int vector_along(int dim) const;

 private:
  struct Axis {
    Expr extent;
    int64_t opt_extent = 1;
    bool reduced = false;
    Shape strides;  // of each tensor; 0 = broadcast
    Dims opt_strides;
  };
  Expr volume(int begin, int end) const;
  int64_t opt_volume(int begin, int end) const;
  Operand view(size_t index, int rank) const;
  bool can_merge(const Axis& outer, const Axis& inner) const;
  static int64_t pace(const Axis& axis);

  std::vector<Axis> axes_;
  struct Start {
    DType dtype;
    Expr offset;
  };
  std::vector<Start> starts_;  // of each tensor
};

}  // namespace lathe::cuda
