// SPDX-License-Identifier: Apache-2.0
#include "tuning/work.h"

#include <algorithm>
#include <map>

#include "ops/seen_keys_of.h"
#include "ops/subscripts.h"

namespace lathe {
namespace {

// What is read of an operand; a dimension that repeats it is read once.
double bytes_of(const Operand& operand) {
  if (operand.omitted) return 0;
  if (is_packed(operand.dtype)) return static_cast<double>(operand.constant->bytes());
  double bytes = bits_of(operand.dtype) / 8.0;
  for (size_t d = 0; d < operand.opt_dims.size(); ++d)
    if (d >= operand.opt_strides.size() || operand.opt_strides[d] != 0 || operand.pages)
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

// Scores of each query and key that it sees, and sums of values by them.
double products_of_attention(const Problem& problem, const Dims& q, double results) {
  const int64_t queries = q[2], keys = opt_whole_dims(problem.inputs[1])[2];
  const SeenKeys seen = seen_keys_of(problem.attrs<AttentionAttrs>());
  double of_one = static_cast<double>(keys);  // on average
  if (!seen.is_all() && queries > 0) {
    double all = 0;
    for (int64_t i = 0; i < queries; ++i) all += static_cast<double>(seen.of(i, queries, keys).count());
    of_one = all / static_cast<double>(queries);
  }
  return of_one * (volume_of(q) + results);
}

double instructions_of(const Program& program, const Operand& operand) {
  return static_cast<double>(program.code.size()) * volume_of(operand.opt_dims);
}

}  // namespace

double volume_of(const Dims& dims) {
  double product = 1;
  for (const int64_t dim : dims) product *= static_cast<double>(dim);
  return product;
}

double products_of(const Problem& problem) {
  const Dims& out = problem.outputs[0].opt_dims;
  const double results = volume_of(out);
  if (problem.inputs.empty()) return results * std::max(1.0, static_cast<double>(problem.program.code.size()));
  const Dims x = opt_whole_dims(problem.inputs[0]);
  if (problem.is(OpKind::matmul)) {
    const size_t from_end = problem.attrs<MatmulAttrs>().transpose_a ? 2 : 1;
    const double sums = results * (problem.pairs ? 2 : 1);
    return x.size() < from_end ? sums : sums * static_cast<double>(x[x.size() - from_end]);
  }
  if (problem.is(OpKind::convolution) || problem.is(OpKind::deconvolution)) {
    const bool transposed = problem.is(OpKind::deconvolution);  // each element of x has each weight of its channel
    const double channels = static_cast<double>(transposed ? x[1] : out[1]);
    return (transposed ? volume_of(x) : results) * volume_of(problem.inputs[1].opt_dims) / std::max(channels, 1.0);
  }
  if (problem.is(OpKind::expert_matmul) || problem.is(OpKind::scaled_matmul))
    return results * static_cast<double>(x.back());
  if (problem.is(OpKind::einsum)) return products_of_einsum(problem);
  if (problem.is(OpKind::attention)) return products_of_attention(problem, x, results);
  if (problem.is(OpKind::recurrence)) return static_cast<double>(x[0] * x[1]) * volume_of(problem.inputs[1].opt_dims);
  if (problem.is(OpKind::pooling)) return results * volume_of(problem.attrs<PoolingAttrs>().window);
  return op_info(problem.attributes->kind()).traits & kReduction ? volume_of(x) : results;
}

double operations_of(const Problem& problem) {
  double operations = instructions_of(problem.program, problem.outputs[0]);
  for (const Operand& input : problem.inputs) operations += instructions_of(input.program, input);
  if (!problem.attributes) return operations;
  const uint32_t traits = op_info(problem.attributes->kind()).traits;
  if (traits & (kMovement | kView)) return operations;
  const bool multiplies = (traits & kContraction) || problem.is(OpKind::einsum) || problem.is(OpKind::recurrence) ||
                          problem.is(OpKind::expert_matmul);
  return operations + (multiplies ? 2 : 1) * products_of(problem);
}

double moved_bytes(const Problem& problem) {
  double bytes = 0;
  for (const Operand* tensor : tensors_of(problem)) bytes += bytes_of(*tensor);
  return bytes;
}

}  // namespace lathe
