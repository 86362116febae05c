// SPDX-License-Identifier: Apache-2.0
#include "tuning/gathered_content.h"

#include <cstring>
#include <numeric>

#include "ops/rules.h"
#include "tuning/packed_weights.h"
#include "tuning/program_content.h"

namespace lathe {
namespace {

// Where the elements that are taken begin, from that of index 0 on.
std::vector<int64_t> offsets_of(const Taken& taken, const Dims& dims, const Dims& strides) {
  std::vector<int64_t> offsets;
  for (int64_t index : taken.indices) {
    int64_t offset = 0;
    for (size_t d = taken.end; d-- > taken.begin; index /= dims[d]) offset += index % dims[d] * strides[d];
    offsets.push_back(offset);
  }
  return offsets;
}

// Two dimensions of a matrix; of that which is taken, some.
std::vector<int64_t> indices_of(int64_t extent, bool is_taken, const Taken& taken) {
  if (is_taken && !taken.indices.empty()) return taken.indices;
  std::vector<int64_t> all(static_cast<size_t>(extent));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

}  // namespace

Result<Tensor> gather(const Tensor& memory, int64_t first, const TensorArg& arg, DType dtype, const Taken& taken) {
  Dims dims(arg.dims, arg.dims + arg.rank), strides(arg.strides, arg.strides + arg.rank);
  std::vector<int64_t> offsets = {0};
  int64_t inner = 1;  // elements behind one that is taken
  if (!taken.indices.empty()) {
    offsets = offsets_of(taken, dims, strides);
    const auto begin = static_cast<ptrdiff_t>(taken.begin), end = static_cast<ptrdiff_t>(taken.end);
    dims.erase(dims.begin() + begin + 1, dims.begin() + end);
    strides.erase(strides.begin() + begin + 1, strides.begin() + end);
    dims[taken.begin] = static_cast<int64_t>(offsets.size());
    strides[taken.begin] = 0;
    for (size_t d = taken.begin + 1; d < dims.size(); ++d) inner *= dims[d];
  }
  LATHE_ASSIGN(Tensor dense, Tensor::allocate(dtype, dims));
  Walk walk(dims, {strides});
  const size_t size = size_of(dtype);
  auto* to = static_cast<std::byte*>(dense.mutable_data());
  const auto* from = static_cast<const std::byte*>(memory.data());
  for (int64_t i = 0, n = dense.volume(); i < n; ++i, walk.next(), to += size) {
    const auto index = static_cast<size_t>(i / inner) % offsets.size();
    const int64_t at = first + walk.offset(0) + offsets[index];
    if (dtype == memory.dtype())
      std::memcpy(to, from + static_cast<size_t>(at) * size, size);
    else
      dense.mutable_as<float>()[i] = element_of(memory, at);
  }
  return dense;
}

Result<Tensor> dequantized(const Operand& operand, const Taken& taken) {
  Dims dims = operand.opt_dims;
  if (!taken.indices.empty()) dims[taken.begin] = static_cast<int64_t>(taken.indices.size());
  LATHE_ASSIGN(Tensor result, Tensor::allocate(DType::f32, dims));
  auto* to = result.mutable_as<float>();
  for (const PackedWeights& weights : packed_matrices(operand, false)) {
    const std::vector<int64_t> rows = indices_of(weights.k(), taken.begin + 2 == dims.size(), taken);
    const std::vector<int64_t> columns = indices_of(weights.n(), taken.begin + 1 == dims.size(), taken);
    for (const int64_t k : rows)
      for (const int64_t n : columns) *to++ = weights.weight(k, n);
  }
  return result;
}

}  // namespace lathe
