// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/normalized_tactic.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "kernels/axes_tactic.h"
#include "kernels/cuda/gemm/product_tactic.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda::gemm {
namespace {

constexpr int64_t kPanel = 64;      // elements of K, of 16 bits
constexpr int64_t kFewRows = 16;    // whose products are others' (gemv)
constexpr int64_t kTermWidth = 16;  // columns of a sink at once, at most
constexpr int64_t kFactorBytes = 8;
// Products of weights and scales lose bits below 2^-14 in f16: they are multiplied by this, and their sums divided.
constexpr float kHalfFactor = 64;

float weights_factor(DType dtype) { return dtype == DType::f16 ? kHalfFactor : 1; }

std::optional<RowNormalization> attributes_of(const Problem& problem) {
  Problem alone;
  alone.attributes = problem.inputs[0].normalization;
  alone.inputs = {problem.inputs[0]};
  return row_normalization(alone);
}

float largest_of(const Tensor& halves) {
  const auto* bits = halves.as<uint16_t>();
  uint16_t largest = 0;
  for (int64_t i = 0; i < halves.volume(); ++i) largest = std::max<uint16_t>(largest, bits[i] & 0x7fff);
  return halves.dtype() == DType::f16 ? static_cast<float>(std::bit_cast<Half>(largest))
                                      : static_cast<float>(std::bit_cast<BFloat16>(largest));
}

// Whether their products have the bits of an f16, and the largest of them are numbers.
bool fit_type(const Tensor& weights, const Tensor* scale) {
  constexpr float kLeast = 0x1p-10f, kMost = 0x1p8f;
  if (weights.dtype() != DType::f16) return true;
  const float largest = largest_of(weights) * (scale ? largest_of(*scale) : 1);
  return largest >= kLeast && largest <= kMost;
}

const Tensor* vector_of(const Problem& problem, size_t i) {
  const std::vector<Operand>& vectors = problem.inputs[0].operands;
  return i < vectors.size() ? vectors[i].constant : nullptr;
}

// Of each row of packed weights, [n][pitch]: times the scale, the sum of these, and its product with the bias.
template <class T>
void scale_rows(const Tensor& from, int64_t k, const Tensor* scale, const Tensor* bias, float factor, Tensor& to,
                float* sums, float* shifts) {
  const int64_t rows = from.dims()[1], pitch = from.dims()[2];
  const auto vector = [&](const Tensor* tensor, float otherwise) {
    std::vector<float> values(static_cast<size_t>(k), otherwise);
    for (int64_t i = 0; tensor && i < k; ++i) values[static_cast<size_t>(i)] = static_cast<float>(tensor->as<T>()[i]);
    return values;
  };
  const std::vector<float> factors = vector(scale, 1), added = vector(bias, 0);
  std::fill_n(to.mutable_as<T>(), to.volume(), T(0.0f));
  for (int64_t row = 0; row < rows; ++row) {
    const T* const read = from.as<T>() + row * pitch;
    T* const written = to.mutable_as<T>() + row * pitch;
    double sum = 0, shift = 0;
    for (int64_t i = 0; i < k; ++i) {
      const auto weight = static_cast<float>(read[i]);
      written[i] = T(weight * factors[static_cast<size_t>(i)] * factor);
      sum += static_cast<float>(written[i]);
      shift += double{weight} * added[static_cast<size_t>(i)];
    }
    sums[row] = static_cast<float>(sum);
    shifts[row] = static_cast<float>(shift);
  }
}

// Of what splits keep there.
Expr workspace_end(const Product& product, const TileShape& tile, DType dtype) {
  constexpr int64_t kAlignment = 16;
  const Expr bytes = partial_bytes(ending_of(product, dtype), tile.cluster ? 1 : tile.splits);
  return ceildiv(bytes, kAlignment) * kAlignment;
}

}  // namespace

std::optional<std::string> refuse_normalization(const Problem& problem, const Product& p) {
  if (problem.inputs.empty() || !problem.inputs[0].normalization) return std::nullopt;
  const Operand& x = problem.inputs[0];
  const std::optional<RowNormalization> rows = attributes_of(problem);
  if (!rows || rows->by_channel || rows->first_axis + 1 != x.rank()) return "rows of another length are normalised";
  if (!is_matrix_half(problem.target, x.dtype)) return fmt::format("normalised rows of type {}", name_of(x.dtype));
  if (!p.weights || !p.batch.empty() || !problem.is(OpKind::matmul)) return "normalised rows by several matrices";
  if (problem.sparse) return "normalised rows by sparse weights";
  const int64_t width = p.a.width * static_cast<int64_t>(size_of(x.dtype));
  if (p.a.major != Major::k || p.a.has_several_strides() || width != 16) return "normalised rows of another order";
  if (p.opt_k == 0 || p.opt_k % kPanel != 0) return fmt::format("normalised rows of {} elements", p.opt_k);
  if (p.m.evaluate(problem.symbols).value_or(0) <= kFewRows) return "few normalised rows";
  for (const Operand& vector : x.operands)
    if (!vector.constant || vector.dtype != x.dtype || vector.dims != Shape{x.dims.back()})
      return "rows are normalised by other than a constant vector of their type";
  if (!fit_type(*problem.inputs[1].constant, vector_of(problem, 0)))
    return "rows are normalised, and their scale times the weights is beyond their type";
  return std::nullopt;
}

NormalizedSums::NormalizedSums(const Problem& problem, const Product& product, const TileShape& tile)
    : problem_(problem),
      product_(product),
      finds_them_(tile.sums_rows),
      k_(product.opt_k),
      attributes_(*attributes_of(problem)),
      scale_(vector_of(problem, 0)),
      bias_(vector_of(problem, 1)),
      begin_(workspace_end(product, tile, problem.inputs[0].dtype)) {}

Result<> NormalizedSums::add_terms(Emission& emission) {
  const Tensor& weights = emission.packed[0].content;
  const float factor = weights_factor(weights.dtype());
  const int64_t pitch = round_up(weights.dims()[1], kTermWidth);
  LATHE_ASSIGN(Tensor scaled, Tensor::allocate(weights.dtype(), weights.dims()));
  LATHE_ASSIGN(Tensor terms, Tensor::allocate(DType::f32, {2, pitch}));
  auto* const sums = terms.mutable_as<float>();
  std::fill_n(sums, 2 * pitch, 0.0f);
  if (weights.dtype() == DType::f16)
    scale_rows<Half>(weights, k_, scale_, bias_, factor, scaled, sums, sums + pitch);
  else
    scale_rows<BFloat16>(weights, k_, scale_, bias_, factor, scaled, sums, sums + pitch);
  emission.packed[0] = std::move(scaled);
  if (!attributes_.subtracts_mean && !bias_) return {};
  terms_input_ = emission.inputs.size();
  terms_ = packed_operand(terms);
  emission.inputs.push_back({StepInput::packed, emission.packed.size()});
  emission.packed.emplace_back(std::move(terms));
  return {};
}

std::string NormalizedSums::statistic() const {
  const RowStatistic statistic = statistic_of(attributes_);
  return fmt::format("{}{{{}}}", statistic.type, statistic.members);
}

void NormalizedSums::add_statistics(Emission& emission) const {
  constexpr int64_t kWarps = 4;
  if (finds_them_) return;
  Source source("gemm/normalized_rows.cuh");
  source.input(0, problem_.inputs[0], "A");
  source.workspace("row_factors", begin_, "gemm::RowFactors");
  const std::string call = fmt::format("gemm::find_row_factors<{}, {}>(A_.data, {}, {}, {}, row_factors);", k_, kWarps,
                                       source.number(product_.a.pitch), source.number(product_.m), statistic());
  emission.launches.push_back(
      source.finish(call, {ceildiv(product_.m, kWarps), 1, 1}, static_cast<uint32_t>(32 * kWarps), 0));
}

void NormalizedSums::add_workspace(Emission& emission) const {
  if (!finds_them_) emission.workspace = begin_ + product_.m * kFactorBytes;
}

std::string NormalizedSums::rows() const {
  if (!finds_them_) return kPlainRows;
  return fmt::format("gemm::RowStatistics<Tile, {}, {}>{{{}, nullptr, {{}}}}", statistic_of(attributes_).type, k_,
                     statistic());
}

std::string NormalizedSums::sink(Source& source, const std::string& own) const {
  source.include("gemm/normalized_rows.cuh");
  if (terms_) source.input(terms_input_, *terms_, "Terms");
  const std::string terms =
      terms_ ? fmt::format("Terms_.data, Terms_.data + {}", *terms_->dims[1].as_constant()) : "nullptr, nullptr";
  if (!finds_them_) source.workspace("row_factors", begin_, "gemm::RowFactors");
  return fmt::format("gemm::normalizing_sink<{}, {}>({}, gemm::FactorsAt{{{}}}, {}, {:a}f)", attributes_.subtracts_mean,
                     bias_ != nullptr, own, finds_them_ ? "rows.factors, block.row" : "row_factors, 0L", terms,
                     1 / weights_factor(problem_.inputs[0].dtype));
}

}  // namespace lathe::cuda::gemm
