// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/collapse.h"

#include <algorithm>
#include <numeric>

namespace lathe::cuda {
namespace {

Operand with_dims(const Operand& operand) {
  Operand result;
  result.dtype = operand.dtype;
  result.constant = operand.constant;
  result.weights = operand.weights;
  result.derivation = operand.derivation;
  result.offset = operand.offset;
  if (operand.padding) result.padding = {{}, operand.padding->value};
  return result;
}

// Whether the last dimension of each result only has to be made longer to take up `dim`.
bool continues(const std::vector<Operand>& results, const std::vector<Operand>& tensors, size_t dim) {
  const Expr& extent = tensors[0].dims[dim];
  for (size_t k = 0; k < tensors.size(); ++k)
    if (results[k].strides.back() != tensors[k].strides[dim] * extent || tensors[k].dims[dim] != extent) return false;
  return true;
}

}  // namespace

std::vector<Operand> collapse(std::vector<Operand> tensors) {
  const Operand& first = tensors[0];
  std::vector<size_t> order;
  for (size_t d = 0; d < first.dims.size(); ++d)
    if (first.dims[d] != Expr(1)) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return first.opt_strides[a] > first.opt_strides[b]; });
  std::vector<Operand> results;
  for (const Operand& tensor : tensors) results.push_back(with_dims(tensor));
  for (const size_t dim : order) {
    const bool merges = !results[0].dims.empty() && continues(results, tensors, dim);
    for (size_t k = 0; k < tensors.size(); ++k) {
      if (!merges) {
        results[k].append_dim(tensors[k].dim(dim));
        if (results[k].padding) results[k].padding->begin.push_back(tensors[k].padding->begin[dim]);
        continue;
      }
      results[k].dims.back() *= tensors[k].dims[dim];
      if (results[k].padding) results[k].padding->begin.back() *= tensors[k].dims[dim];
      results[k].opt_dims.back() *= tensors[k].opt_dims[dim];
      results[k].strides.back() = tensors[k].strides[dim];
      results[k].opt_strides.back() = tensors[k].opt_strides[dim];
    }
  }
  if (!results[0].dims.empty()) return results;
  for (Operand& result : results) {
    result.dims = result.strides = {1};
    result.opt_dims = result.opt_strides = {1};
  }
  return results;
}

bool fits_32_bits(const std::vector<Operand>& tensors) {
  for (const Operand& tensor : tensors) {
    double last = 0;
    for (size_t d = 0; d < tensor.dims.size(); ++d) {
      const auto dim = tensor.dims[d].as_constant(), stride = tensor.strides[d].as_constant();
      if (!dim || !stride) return false;
      last += static_cast<double>(*dim) * static_cast<double>(*stride < 0 ? -*stride : *stride);
    }
    if (last > INT32_MAX) return false;
  }
  return true;
}

int64_t opt_volume(const Operand& operand) {
  return std::accumulate(operand.opt_dims.begin(), operand.opt_dims.end(), int64_t{1}, std::multiplies<>());
}

double opt_bytes(const Operand& operand) {
  double bytes = static_cast<double>(size_of(operand.dtype));
  for (size_t d = 0; d < operand.opt_dims.size(); ++d)
    if (operand.opt_strides[d] != 0) bytes *= static_cast<double>(operand.opt_dims[d]);
  return bytes;
}

double memory_bound_us(const Target& target, double bytes) {
  constexpr double kMemoryShare = 0.73;  // of the memory's rate, as it is reached
  return target.launch_us + bytes / (kMemoryShare * target.memory_rate);
}

}  // namespace lathe::cuda
