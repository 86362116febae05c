// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cost_tactic.h"

#include <algorithm>

namespace lathe::cpu {
namespace {

constexpr double kReached = 0.8;  // of the cores' multiplications

double volume(const Dims& dims) {
  double product = 1;
  for (const int64_t dim : dims) product *= static_cast<double>(dim);
  return product;
}

// What is read of an operand; a dimension that repeats it is read once.
double bytes_of(const Operand& operand) {
  if (operand.omitted) return 0;
  double bytes = static_cast<double>(size_of(operand.dtype));
  for (size_t d = 0; d < operand.opt_dims.size(); ++d)
    if (d >= operand.opt_strides.size() || operand.opt_strides[d] != 0)
      bytes *= static_cast<double>(operand.opt_dims[d]);
  return bytes;
}

// Multiplications with an addition, of the root; of other ops as many as there are results.
double products_of(const Problem& problem) {
  const Operand& out = problem.outputs[0];
  const double results = volume(out.opt_dims);
  if (problem.is(OpKind::matmul)) {
    const Dims& a = problem.inputs[0].opt_dims;
    const size_t from_end = problem.attrs<MatmulAttrs>().transpose_a ? 2 : 1;
    return a.size() < from_end ? results : results * static_cast<double>(a[a.size() - from_end]);
  }
  if (problem.is(OpKind::convolution) || problem.is(OpKind::deconvolution)) {
    const double channels = out.opt_dims.size() > 1 ? static_cast<double>(out.opt_dims[1]) : 1;
    return results * volume(problem.inputs[1].opt_dims) / std::max(channels, 1.0);
  }
  return results;
}

}  // namespace

double predicted_us(const Problem& problem, size_t rank, double padded) {
  const Target& target = problem.target;
  double bytes = 0;
  for (const Operand* tensor : tensors_of(problem)) bytes += bytes_of(*tensor);
  const bool is_cached = bytes <= target.cache_bytes * target.cores;
  const double moving = bytes / (is_cached ? target.cache_rate() : target.memory_rate);
  const double computing =
      padded * products_of(problem) / (kReached * target.products.f32 * target.cores * target.clock_mhz);
  return (target.launch_us + std::max(moving, computing)) * (1 + 0.02 * static_cast<double>(rank));
}

}  // namespace lathe::cpu
