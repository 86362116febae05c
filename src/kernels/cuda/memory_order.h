// SPDX-License-Identifier: Apache-2.0
// Problems with their dimensions in the order in which the output lies in memory: neighbouring threads of kernels that
// count output elements then work on neighbouring elements, whatever the layout.
#pragma once

#include "kernels/cuda/source.h"

namespace lathe::cuda {

// The dimensions from the slowest to the fastest.
std::vector<size_t> memory_order(const Operand& operand);
Operand permuted(const Operand& operand, const std::vector<size_t>& order);
// A function of a dimension in device code, a member of a struct: "static constexpr long name(int i)".
std::string dim_function(std::string_view name, const std::vector<int64_t>& values);

// A way to share runs among threads: W neighbours along the last dimension of the output, the last of them short if
// need be.
struct RunShape {
  int64_t threads = 128, width = 1;
};

// Of a kernel whose threads gather a run each.
class RunMatch : public Match {
 public:
  std::vector<Config> configs() const final;

 protected:
  // `taps` elements of the input are read for each of the output. `changed`: dimensions along which the output's
  // elements are not those of the input at their places.
  RunMatch(const Problem& problem, const std::vector<bool>& changed, int64_t taps);

  // The epilogue's operands come next among the inputs of the source and the step.
  void declare_epilogue(Source& source, Emission& emission) const;
  SourceLaunch finish(Source& source, std::string_view call, const RunShape& shape) const;

  const Problem& problem_;
  std::vector<size_t> order_;
  Operand x_, y_;  // in that order

 private:
  int64_t taps_, widest_;
};

}  // namespace lathe::cuda
