// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit floats with scales by blocks of K, by tiles on tensor cores.
#include "kernels/cuda/gemm/pipeline_tactic.h"
#include "kernels/cuda/gemm/product_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"
#include "kernels/pack_tactic.h"

namespace lathe::cuda {
namespace {

using gemm::Product;
using gemm::TileShape;

constexpr size_t kRowScales = 2, kColumnScales = 3;  // of the problem's inputs
constexpr int64_t kLeastBlock = 32, kWidestTile = 128;

const MatmulAttrs& along_k() {
  static const MatmulAttrs attributes = [] {
    MatmulAttrs a;
    a.transpose_b = true;
    return a;
  }();
  return attributes;
}

Problem without_scales(const Problem& problem) {
  Problem plain = problem;
  plain.attributes = &along_k();
  plain.inputs.resize(kRowScales);
  return plain;
}

// Whether all rows' scales lie at one stride, in the order of the product's rows.
bool is_dense_in_rows(const Operand& scales) {
  for (size_t d = scales.dims.size() - 2; d-- > 0;)
    if (scales.dims[d] != Expr(1) && scales.strides[d] != scales.strides[d + 1] * scales.dims[d + 1]) return false;
  return true;
}

// How many columns share a scale as the kernel reads them; 0 = there are none.
int64_t columns_of(const Problem& problem) {
  return problem.has_input(kColumnScales) ? problem.attrs<ScaledMatmulAttrs>().columns : 0;
}

std::optional<std::string> describe_scaled(const Problem& problem, Product& product) {
  if (!problem.is(OpKind::scaled_matmul)) return "not a product with scales by blocks";
  const auto& attrs = problem.attrs<ScaledMatmulAttrs>();
  const Problem plain = without_scales(problem);
  if (auto reason =
          unsupported_feature(problem, {.reassociated_result = true, .reassociated_inputs = 1, .float8 = true}))
    return reason;
  if (auto reason = gemm::describe(plain, product)) return reason;
  if (!product.batch.empty()) return "rows that do not lie at one stride";
  if (!gemm::has_tensor_core(plain, product.a.major) || !gemm::has_tensor_core(plain, product.b.major))
    return "8-bit floats that no matrix units multiply";
  if (attrs.block % kLeastBlock != 0)
    return fmt::format("blocks of {}, which are no multiple of {}", attrs.block, kLeastBlock);
  const int64_t columns = columns_of(problem);
  if (columns > 1 && columns % kWidestTile != 0)
    return fmt::format("scales of {} columns, which are no multiple of {}", columns, kWidestTile);
  if (problem.has_input(kRowScales) && !is_dense_in_rows(problem.inputs[kRowScales]))
    return "scales of rows that do not lie at one stride";
  return std::nullopt;
}

std::vector<Config> configs(const Problem& problem, const Product& p) {
  const auto& attrs = problem.attrs<ScaledMatmulAttrs>();
  gemm::Extent extent = gemm::extent_of(p.problem, p);
  const gemm::Ending ending = gemm::ending_of(p, problem.inputs[0].dtype);
  extent.scaled_block = attrs.block;
  extent.scaled_columns = columns_of(problem) == 1;
  extent.copied = attrs.block % kWidestTile == 0 && gemm::can_copy(p.problem, p, ending);
  extent.by_rows = gemm::stores_by_rows(ending);
  return gemm::configs(extent);
}

// Constant scales of columns lie side by side for neighbouring columns.
Result<Packed> pack_scales(const Tensor& scales) {
  const Dims& dims = scales.dims();
  return pack(Known{scales, nullptr}, {dims[1], dims[0]}, {{dims[0], dims[1], 1}, {dims[1], 1, dims[0]}});
}

struct ReadScales {
  size_t index = 0;  // of the emission's inputs
  Operand operand;
  Expr line, block;  // strides from one row or column to the next, and from one block of K to the next
};

// Gives what the kernel declares for it.
Operand add_packed(Packed packed, Emission& emission) {
  emission.inputs.push_back({StepInput::packed, emission.packed.size()});
  emission.packed.push_back(std::move(packed));
  return packed_operand(emission.packed.back());
}

// Nothing where the input is omitted.
Result<std::optional<ReadScales>> add_scales(const Problem& problem, size_t input, Emission& emission) {
  if (!problem.has_input(input)) return std::optional<ReadScales>();
  const Operand& scales = problem.inputs[input];
  const size_t index = emission.inputs.size(), last = scales.dims.size() - 1;
  if (input == kColumnScales && scales.constant && columns_of(problem) == 1) {
    LATHE_ASSIGN(Packed packed, pack_scales(*scales.constant));
    const Operand operand = add_packed(std::move(packed), emission);
    return std::optional(ReadScales{index, operand, operand.strides[1], operand.strides[0]});
  }
  emission.inputs.push_back({StepInput::input, input});
  return std::optional(ReadScales{index, scales, scales.strides[last - 1], scales.strides[last]});
}

struct ScalesOfSums {
  std::optional<ReadScales> rows, columns;
};

// What it declares is of the type BlockScales.
std::string declare_scales(Source& source, const ScalesOfSums& scales, std::string_view type, const Product& p) {
  const auto text = [&](const std::optional<ReadScales>& each, std::string_view name) {
    if (!each) return std::string("nullptr, 0, 0");
    source.input(each->index, each->operand, name);
    return fmt::format("{}_.data, {}, {}", name, source.number(each->line), source.number(each->block));
  };
  const std::string rows = text(scales.rows, "RowScales"), columns = text(scales.columns, "ColumnScales");
  return fmt::format("const {} scales = {{{}, {}, {}, {}, {}}};\n  ", type, rows, columns, source.number(p.m),
                     source.number(p.n), source.number(p.k));
}

Result<Emission> emit(const Problem& problem, const Product& p, const Config& config) {
  const auto& tile = config.as<TileShape>();
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}};
  Operand b = problem.inputs[1];
  if (p.weights) {
    LATHE_ASSIGN(Packed packed, gemm::pack_weights(p.problem));
    b = add_packed(std::move(packed), emission);
  } else {
    emission.inputs.push_back({StepInput::input, 1});
  }
  ScalesOfSums scales;
  LATHE_ASSIGN(scales.rows, add_scales(problem, kRowScales, emission));
  LATHE_ASSIGN(scales.columns, add_scales(problem, kColumnScales, emission));
  gemm::Ending ending = gemm::ending_of(p, problem.inputs[0].dtype);
  ending.first_operand = emission.inputs.size();
  ending.scales_type = fmt::format("gemm::BlockScales<{}, {}, {}>", problem.attrs<ScaledMatmulAttrs>().block,
                                   columns_of(problem), scales.rows.has_value());
  ending.scales = [&](Source& source) { return declare_scales(source, scales, ending.scales_type, p); };
  add_operand_inputs(problem, emission);
  if (tile.unit == TileShape::pipeline) {
    gemm::finish_pipeline(problem, p, tile, ending, emission);
    return emission;
  }
  Source source("gemm_scaled/gemm_scaled.cuh");
  if (!p.a.has_several_strides()) source.input(0, problem.inputs[0], "A");
  source.input(1, b, "B");
  std::string body =
      gemm::declare_product(source, tile, gemm::tile_type(tile, ending, p.a.major, p.b.major), p.m, p.n, p.k);
  body += gemm::load_left(source, problem, p, tile, emission);
  body += gemm::dense_loader(source, gemm::dense_operand(source, p, false), tile);
  gemm::finish(source, body, tile, ending, emission);
  return emission;
}

}  // namespace

Matched match_gemm_scaled(const Problem& problem) {
  Product product;
  if (auto reason = describe_scaled(problem, product)) return refuse(*std::move(reason));
  return match_form(problem, std::move(product), configs, emit);
}

}  // namespace lathe::cuda
