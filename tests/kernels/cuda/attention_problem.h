// SPDX-License-Identifier: Apache-2.0
// Attentions as the tests of their tactics ask for them.
#pragma once

#include <cmath>

#include "kernels/cuda/kernel_check.h"
#include "ops/rules.h"

namespace lathe::cuda {

inline AttentionAttrs attention_attributes(double scale, bool causal = false, double softcap = 0) {
  AttentionAttrs attrs;
  attrs.scale = scale;
  attrs.causal = causal;
  attrs.softcap = softcap;
  return attrs;
}

inline AttentionAttrs window_attributes(double scale, bool causal, int64_t window) {
  AttentionAttrs attrs = attention_attributes(scale, causal);
  attrs.window = window;
  return attrs;
}

// Keys or values [batch, heads, rows, size], of which those before `first` are not numbers.
inline Tensor numbers_from(int64_t first, DType dtype, const Dims& dims) {
  Tensor tensor = *Tensor::allocate(dtype, dims);
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  for (int64_t i = 0; i < tensor.volume(); ++i)
    values[i] = i / dims[3] % dims[2] < first ? std::nan("") : std::sin(static_cast<double>(i * 7 % 1013));
  from_doubles(values, tensor);
  return tensor;
}

// Sizes: batch, heads, kv_heads, queries, keys, size and value_size of a head; each test has its own usual ones.
template <class Sizes>
Problem attention_problem(const AttentionAttrs& attrs, DType dtype, const Sizes& s, const std::vector<Operand>& mask) {
  std::vector<Operand> inputs = {operand(dtype, {s.batch, s.heads, s.queries, s.size}),
                                 operand(dtype, {s.batch, s.kv_heads, s.keys, s.size}),
                                 operand(dtype, {s.batch, s.kv_heads, s.keys, s.value_size})};
  inputs.insert(inputs.end(), mask.begin(), mask.end());
  return op_problem(attrs, std::move(inputs), {operand(dtype, {s.batch, s.heads, s.queries, s.value_size})});
}

// The same with sinks of that type; `mask`: one, or none.
template <class Sizes>
Problem with_sinks(const AttentionAttrs& attrs, DType dtype, const Sizes& s, const std::vector<Operand>& mask,
                   DType type) {
  Operand none;
  none.omitted = true;
  std::vector<Operand> last = mask.empty() ? std::vector{none} : mask;
  last.push_back(operand(type, {s.heads}));
  return attention_problem(attrs, dtype, s, last);
}

// The same with so many rows of distances of that type, and without sinks.
template <class Sizes>
Problem with_distances(const AttentionAttrs& attrs, DType dtype, const Sizes& s, const std::vector<Operand>& mask,
                       DType type, int64_t rows) {
  Operand none;
  none.omitted = true;
  std::vector<Operand> last = mask.empty() ? std::vector{none} : mask;
  last.push_back(none);
  last.push_back(operand(type, {rows, s.queries + s.keys - 1}));
  return attention_problem(attrs, dtype, s, last);
}

}  // namespace lathe::cuda
