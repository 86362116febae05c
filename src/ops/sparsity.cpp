// SPDX-License-Identifier: Apache-2.0
#include "ops/sparsity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <span>

#include "base/for_size.h"

namespace lathe {
namespace {

constexpr int64_t kGroup = 4, kKept = 2;

int64_t product(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Calls f with the first element of each group, the elements between two of its members, and how many it has, while f
// is true.
template <class F>
bool for_each_group(const Dims& dims, size_t dim, const F& f) {
  const int64_t extent = dims[dim], stride = product(std::span(dims).subspan(dim + 1));
  const int64_t outer = product(std::span(dims).first(dim));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t k = 0; k < extent; k += kGroup)
      for (int64_t i = 0; i < stride; ++i)
        if (!f((o * extent + k) * stride + i, stride, std::min(kGroup, extent - k))) return false;
  return true;
}

}  // namespace

std::optional<size_t> summed_dim(const Attributes& attributes, const Dims& weights) {
  if (weights.size() < 2) return std::nullopt;
  if (attributes.kind() == OpKind::matmul)
    return weights.size() - (static_cast<const MatmulAttrs&>(attributes).transpose_b ? 1 : 2);
  if (attributes.kind() != OpKind::convolution) return std::nullopt;
  const bool is_one_tap = product(std::span(weights).subspan(2)) == 1;
  return is_one_tap || weights[1] % kGroup == 0 ? std::optional<size_t>(1) : std::nullopt;
}

bool is_sparse(const Tensor& tensor, size_t dim) {
  if (bits_of(tensor.dtype()) < 8) return false;
  return for_size(size_of(tensor.dtype()), [&](auto zero) {
    using Word = decltype(zero);
    constexpr Word kAll = std::numeric_limits<Word>::max();
    const Word magnitude = is_floating(tensor.dtype()) ? kAll / 2 : kAll;
    const Word* const words = tensor.as<Word>();
    return for_each_group(tensor.dims(), dim, [&](int64_t first, int64_t stride, int64_t count) {
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i) kept += (words[first + i * stride] & magnitude) != 0;
      return kept <= kKept;
    });
  });
}

Result<Tensor> pruned(const Tensor& tensor, size_t dim) {
  LATHE_ASSIGN(Tensor result, Tensor::allocate(tensor.dtype(), tensor.dims()));
  std::memcpy(result.mutable_data(), tensor.data(), tensor.bytes());
  const size_t size = size_of(tensor.dtype());
  auto* const bytes = static_cast<std::byte*>(result.mutable_data());
  for_each_group(tensor.dims(), dim, [&](int64_t first, int64_t stride, int64_t count) {
    std::array<int64_t, kGroup> order = {0, 1, 2, 3};
    const auto magnitude = [&](int64_t i) { return std::fabs(tensor.at_double(first + i * stride)); };
    std::stable_sort(order.begin(), order.begin() + count,
                     [&](int64_t a, int64_t b) { return magnitude(a) > magnitude(b); });
    for (int64_t i = kKept; i < count; ++i)
      std::memset(bytes + static_cast<size_t>(first + order[static_cast<size_t>(i)] * stride) * size, 0, size);
    return true;
  });
  return result;
}

}  // namespace lathe
