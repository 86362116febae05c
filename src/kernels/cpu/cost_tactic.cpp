// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cost_tactic.h"

#include <algorithm>
#include <map>

#include "ops/subscripts.h"

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

// Of an einsum: the extents of its labels.
double products_of_einsum(const Problem& problem) {
  std::vector<int64_t> ranks;
  for (const Operand& input : problem.inputs) ranks.push_back(input.rank());
  const Result<Subscripts> subscripts = parse_subscripts(problem.attrs<EinsumAttrs>().equation, ranks);
  std::map<Label, int64_t> extents;
  for (size_t i = 0; subscripts && i < problem.inputs.size(); ++i)
    for (size_t d = 0; d < problem.inputs[i].opt_dims.size(); ++d) {
      int64_t& extent = extents[subscripts->operands[i][d]];
      extent = std::max(extent, problem.inputs[i].opt_dims[d]);
    }
  double products = 1;
  for (const auto& [label, extent] : extents) products *= static_cast<double>(extent);
  return products;
}

// Multiplications with an addition of the root, or what is computed in their place: elements in windows, and
// instructions of programs.
double products_of(const Problem& problem) {
  const Dims& out = problem.outputs[0].opt_dims;
  const double results = volume(out);
  if (problem.inputs.empty()) return results * std::max(1.0, static_cast<double>(problem.program.code.size()));
  const Dims& x = problem.inputs[0].opt_dims;
  if (problem.is(OpKind::matmul)) {
    const size_t from_end = problem.attrs<MatmulAttrs>().transpose_a ? 2 : 1;
    return x.size() < from_end ? results : results * static_cast<double>(x[x.size() - from_end]);
  }
  if (problem.is(OpKind::convolution) || problem.is(OpKind::deconvolution)) {
    const bool transposed = problem.is(OpKind::deconvolution);  // each element of x has each weight of its channel
    const double channels = static_cast<double>(transposed ? x[1] : out[1]);
    return (transposed ? volume(x) : results) * volume(problem.inputs[1].opt_dims) / std::max(channels, 1.0);
  }
  if (problem.is(OpKind::einsum)) return products_of_einsum(problem);
  if (problem.is(OpKind::recurrence)) return static_cast<double>(x[0] * x[1]) * volume(problem.inputs[1].opt_dims);
  if (problem.is(OpKind::pooling)) return results * volume(problem.attrs<PoolingAttrs>().window);
  return op_info(problem.attributes->kind()).traits & kReduction ? volume(x) : results;
}

}  // namespace

double moved_bytes(const Problem& problem) {
  double bytes = 0;
  for (const Operand* tensor : tensors_of(problem)) bytes += bytes_of(*tensor);
  return bytes;
}

double predicted_us(const Problem& problem, const Effort& effort) {
  const Target& target = problem.target;
  const double bytes = moved_bytes(problem);
  const bool is_cached = bytes <= target.cache_bytes * target.cores;
  const double moving = effort.passes * bytes / (is_cached ? target.cache_rate() : target.memory_rate);
  const bool doubles = problem.outputs[0].dtype == DType::f64;
  const double in_a_clock = kReached * (doubles ? target.products.f64 : target.products.f32);
  const double elements = bytes / static_cast<double>(size_of(problem.outputs[0].dtype));
  const double clocks =
      products_of(problem) * (effort.vectors / in_a_clock + effort.clocks) + elements * effort.elements;
  return target.launch_us + std::max(moving, clocks / (target.cores * target.clock_mhz));
}

double packing_us(const Problem& problem) {
  constexpr double kElementClocks = 1;  // of a core
  const Target& target = problem.target;
  return target.launch_us + volume(problem.inputs[1].opt_dims) * kElementClocks / (target.cores * target.clock_mhz);
}

}  // namespace lathe::cpu
