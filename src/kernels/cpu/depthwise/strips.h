// SPDX-License-Identifier: Apache-2.0
// The strips of a launch: output rows cut into pieces of at most config.pixels pixels.
#pragma once

#include "kernels/cpu/depthwise/strip.h"
#include "kernels/cpu/gemm/row_map.h"

namespace lathe::cpu::depthwise {

class Strips {
 public:
  // x is the launch's first input; operands of the epilogue are the third and further ones.
  Strips(const Shape& shape, const DepthwiseConfig& config, const Launch& launch, const BoundEpilogue& epilogue);

  // Calls the function for every strip, with what `common` says of all of them: the weights and the epilogue.
  void run(const Strip& common, StripFunction function, ThreadPool& pool) const;

 private:
  void run(Strip strip, StripFunction function, int64_t first, int64_t last) const;

  Shape shape_;
  DepthwiseConfig config_;
  const TensorArg& x_;
  const TensorArg& out_arg_;
  const BoundEpilogue& epilogue_;
  int64_t batch_ = 1, per_row_ = 1;
  std::array<int64_t, 3> in_{1, 1, 1}, out_{1, 1, 1}, in_stride_{};
  gemm::RowMap<1 + kMaxEpilogueOperands> map_;
};

}  // namespace lathe::cpu::depthwise
