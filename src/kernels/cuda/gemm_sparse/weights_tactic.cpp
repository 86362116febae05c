// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm_sparse/weights_tactic.h"

#include <array>
#include <cstring>
#include <limits>

#include "base/divide.h"
#include "base/for_size.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda::gemm {
namespace {

// SparsePanel of gemm_sparse.cuh.
constexpr int64_t kColumns = 16, kStepBytes = 64;
constexpr uint32_t kFirstTwo = 4;  // the bits of the first two of four, which are stored as 0

int64_t step_elements(DType dtype) { return kStepBytes / static_cast<int64_t>(size_of(dtype)); }
int64_t step_words(DType dtype) { return size_of(dtype) == 2 ? 16 : 32; }

// Where a group of four has its bits among the words of a step: mma_sparse() in lib/intrinsics.cuh.
struct BitsPlace {
  int64_t word, shift;
};
BitsPlace place_of(DType dtype, int64_t column, int64_t group) {
  if (size_of(dtype) == 2) return {column % 8 * 2 + group / 4, column / 8 * 16 + group % 4 * 4};
  return {column % 8 * 4 + column / 8 + group / 8 * 2, group % 8 * 4};
}

// Of four elements, the two that are kept. False where more are not zero.
template <class Word>
bool choose(const Word* group, Word magnitude, std::array<uint32_t, 2>& kept) {
  size_t count = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    if ((group[i] & magnitude) == 0) continue;
    if (count == 2) return false;
    kept[count++] = i;
  }
  if (count == 0) kept = {0, 1};
  if (count == 1) kept = kept[0] == 3 ? std::array<uint32_t, 2>{2, 3} : std::array<uint32_t, 2>{kept[0], kept[0] + 1};
  return true;
}

template <class Word>
bool compress_row(const Word* row, int64_t k, Word magnitude, int64_t column, DType dtype, Word* values,
                  uint32_t* places) {
  const int64_t step = step_elements(dtype);
  for (int64_t at = 0; at < k; at += 4, row += 4, values += 2) {
    std::array<uint32_t, 2> kept = {};
    if (!choose(row, magnitude, kept)) return false;
    values[0] = row[kept[0]], values[1] = row[kept[1]];
    const BitsPlace place = place_of(dtype, column % kColumns, at % step / 4);
    places[at / step * step_words(dtype) + place.word] |= ((kept[0] | kept[1] << 2) ^ kFirstTwo) << place.shift;
  }
  return true;
}

}  // namespace

std::optional<std::string> refuse_sparse(const Problem& problem) {
  if (!problem.sparse) return "the weights are not 2:4 sparse, or zeros are not to be left out";
  const DType dtype = problem.inputs[0].dtype;
  if (dtype != problem.inputs[1].dtype) return "factors of two types";
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::i8)
    return fmt::format("elements of {}", name_of(dtype));
  return std::nullopt;
}

Result<SparseWeights> compress(const Tensor& rows, int64_t matrices) {
  const DType dtype = rows.dtype();
  const int64_t k = rows.dims().back(), all = k == 0 ? 0 : rows.volume() / k, columns = all / matrices;
  const int64_t blocks = ceil_div(columns, kColumns), steps = ceil_div(k, step_elements(dtype));
  SparseWeights weights;
  weights.matrices = matrices;
  LATHE_ASSIGN(weights.values, Tensor::allocate(dtype, {all, steps * step_elements(dtype) / 2}));
  LATHE_ASSIGN(weights.places, Tensor::allocate(DType::u32, {matrices * blocks, steps * step_words(dtype)}));
  std::memset(weights.values.mutable_data(), 0, weights.values.bytes());
  std::memset(weights.places.mutable_data(), 0, weights.places.bytes());
  const bool fits = for_size(size_of(dtype), [&](auto zero) {
    using Word = decltype(zero);
    constexpr Word kAll = std::numeric_limits<Word>::max();
    const Word magnitude = is_floating(dtype) ? kAll / 2 : kAll;
    for (int64_t row = 0; row < all; ++row) {
      const int64_t column = row % columns, block = row / columns * blocks + column / kColumns;
      if (!compress_row(rows.as<Word>() + row * k, k, magnitude, column, dtype,
                        weights.values.mutable_as<Word>() + row * weights.kept(),
                        weights.places.mutable_as<uint32_t>() + block * weights.places.dims()[1]))
        return false;
    }
    return true;
  });
  if (!fits) return fail(ErrorCode::internal, "weights that were found 2:4 sparse are not, along K");
  return weights;
}

void add_weights(const SparseWeights& weights, Emission& emission) {
  for (const Tensor* tensor : {&weights.values, &weights.places}) {
    emission.inputs.push_back({StepInput::packed, emission.packed.size()});
    emission.packed.emplace_back(*tensor);
  }
}

std::string sparse_loader(Source& source, const SparseWeights& weights, const TileShape& tile,
                          std::string_view matrix) {
  source.input(1, packed_operand(weights.values), "B");
  source.input(2, packed_operand(weights.places), "Places");
  const int64_t columns = weights.columns(), kept = weights.kept();
  return fmt::format(
      "gemm::SparseLoader<Tile, {}, {}> b;\n"
      "  b.start(B_.data + ({}) * {}L, Places_.data + ({}) * {}L, {}, {}, block);\n  ",
      columns % tile.n == 0, 2 * kept % tile.k == 0, matrix, columns * kept, matrix,
      ceil_div(columns, kColumns) * weights.places.dims()[1], kept, columns);
}

}  // namespace lathe::cuda::gemm
