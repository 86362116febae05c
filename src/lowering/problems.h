// SPDX-License-Identifier: Apache-2.0
// What tactics are asked to solve for the regions of a graph whose values are placed.
#pragma once

#include "lowering/build.h"
#include "lowering/placement.h"

namespace lathe {

class Problems {
 public:
  // `optimum`: the values of the graph's symbols that the tuner measures with. All references must outlive it.
  Problems(const Placement& placement, const BuildOptions& options, std::vector<int64_t> optimum)
      : placement_(placement), options_(options), optimum_(std::move(optimum)) {}

  Problem of(const Region& region) const;
  // A copy is the pointwise region that computes nothing.
  Problem of_copy(const plan::TensorDesc& from, const plan::TensorDesc& to) const;
  Operand operand_at(const plan::TensorDesc& tensor) const;
  // Whether the kernel for the region reads a channels-last copy of its input 0, and the dims that such has room for.
  bool wants_channels_last(const Region& region) const;
  Shape pixel_dims(const ir::Value* x) const;

  Dims at_optimum(const Shape& shape) const;

 private:
  Problem empty() const;
  bool is_sparse(const Problem& problem) const;
  void add_inputs(const Region& region, Problem& problem) const;
  void add_outputs(const Region& region, Problem& problem) const;
  Operand produced(const Expression& producer, const ir::Value& input) const;
  Operand paged(const Expression& producer, const ir::Value& input) const;
  Operand along_axes(const ir::Value* value, const Read& read, const Space& space) const;
  Operand operand_of(const ir::Value* value) const;
  Operand with_optimum(Operand operand) const;

  const Placement& placement_;
  const BuildOptions& options_;
  const std::vector<int64_t> optimum_;  // by symbol
};

}  // namespace lathe
