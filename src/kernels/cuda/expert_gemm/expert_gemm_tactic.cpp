// SPDX-License-Identifier: Apache-2.0
// Rows times the matrices of their experts, by the tiles of matrix products.
#include "base/divide.h"
#include "kernels/cuda/expert_gemm/expert_rows_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/pack_tactic.h"
#include "tuning/work.h"

namespace lathe::cuda {
namespace {

using gemm::TileShape;

struct ExpertGemm {
  RoutedRows rows;
  Expr n, k;
  gemm::Matrix a, b;   // b: of an expert, whose batch stride is from one to the next
  bool packs = false;  // B is constant: packed K-major, rows padded to 16 bytes
};

struct Blocks {
  TileShape tile;
  bool sorts = false;
  RowParts parts() const { return {tile.m, sorts}; }
};

constexpr size_t kIds = 2;  // of the inputs
constexpr int64_t kVectorBytes = 16;

int64_t packed_pitch(const Tensor& weights, int64_t k) {
  return round_up(k, kVectorBytes / static_cast<int64_t>(size_of(weights.dtype())));
}

std::optional<std::string> describe_weights(const Problem& problem, ExpertGemm& form) {
  const Operand& b = problem.inputs[1];
  const size_t k = problem.attrs<ExpertMatmulAttrs>().transpose_w ? 2 : 1, n = 3 - k;
  form.k = b.dims[k], form.n = b.dims[n];
  if (form.k == Expr(0) || form.n == Expr(0)) return "matrices without elements";
  form.packs = b.constant != nullptr;
  Expr n_stride = b.strides[n], k_stride = b.strides[k], stride = b.strides[0];
  if (form.packs) {
    n_stride = packed_pitch(*b.constant, b.constant->dims()[k]), k_stride = 1;
    stride = n_stride * form.n;
  }
  if (!gemm::describe(b, form.n, n_stride, form.k, k_stride, {stride}, form.b))
    return "neither dimension of the matrices is contiguous";
  return std::nullopt;
}

std::optional<std::string> describe(const Problem& problem, ExpertGemm& form) {
  if (!problem.is(OpKind::expert_matmul)) return "not rows by matrices of experts";
  if (auto reason = unsupported_feature(problem, {.pairs = true})) return reason;
  if (auto reason = describe(problem, form.rows)) return reason;
  if (auto reason = describe_weights(problem, form)) return reason;
  const Operand& x = problem.inputs[0];
  if (x.strides.back() != Expr(1) && form.k != Expr(1)) return "the elements of a row are not neighbours";
  Shape strides(form.rows.x.strides.begin(), form.rows.x.strides.end() - 1);
  strides.push_back(x.offset);
  form.a.width = gemm::copy_width(x.dtype, strides);
  return std::nullopt;
}

gemm::Extent extent_of(const Problem& problem, const ExpertGemm& form) {
  gemm::Extent e = gemm::extent_of(problem, gemm::Major::k, form.b.major);
  e.batch = form.rows.used(), e.m = form.rows.rows_of_each();
  e.n = form.n.evaluate(problem.symbols).value_or(1), e.k = form.rows.x.opt_dims.back();
  e.copy_width = form.a.width;
  return e;
}

std::vector<Config> configs(const Problem& problem, const ExpertGemm& form) {
  constexpr size_t kMostConfigs = 12;
  const double sort_us = 1.5 * problem.target.launch_us;
  std::vector<Config> configs;
  for (const Config& each : gemm::every_config(extent_of(problem, form))) {
    const auto& tile = each.as<TileShape>();
    if (tile.splits > 1 && !tile.cluster) continue;
    configs.push_back(
        {.text = each.text + " sorted", .predicted_us = each.predicted_us + sort_us, .choice = Blocks{tile, true}});
    if (form.rows.may_be_few(tile.m))
      configs.push_back({.text = each.text + " few", .predicted_us = each.predicted_us, .choice = Blocks{tile, false}});
  }
  return best_first(std::move(configs), kMostConfigs);
}

SourceLaunch multiplying(const Problem& problem, const ExpertGemm& form, const Blocks& blocks, const Operand& b,
                         Emission& emission) {
  const TileShape& tile = blocks.tile;
  const RoutedRows& rows = form.rows;
  const DType dtype = rows.x.dtype;
  Source source("expert_gemm/expert_gemm.cuh");
  source.input(0, rows.x, "A");
  source.input(1, b, "B");
  const gemm::Sink sink = gemm::declare_sink(source, rows.ending(problem, kIds, form.n), 1, emission);
  const std::string store = tile.adds_sums()
                                ? fmt::format("store_sums<{}, {}", sink.vector, tile.cluster ? tile.splits : 1)
                                : fmt::format("store_tile<{}, {}", sink.vector, gemm::slabs(tile, dtype));
  const gemm::DenseOperand right{
      "b",
      "B",
      fmt::format(" + part.expert % {} * {}", rows.experts, source.number(form.b.batch_strides[0])),
      form.b.pitch,
      form.b.width,
      form.b.major,
      form.n,
      form.k};
  const Expr parts = rows.parts(blocks.parts());
  const int64_t shared = gemm::shared_bytes(tile, dtype);
  std::string call = fmt::format(
      "using Tile = {0};\n"
      "  const long rows = {1}, n = {2}, k = {3};\n"
      "  const unsigned place = static_cast<unsigned>(block_x()) / {4}u, parts = static_cast<unsigned>({5});\n"
      "  const int number = static_cast<int>(place % parts);\n"
      "  expert_gemm::Part part;\n"
      "  if (!{6}) return;\n"
      "  const long m = part.end;\n"
      "  const gemm::Block block =\n"
      "      expert_gemm::block_of<Tile>(part, {7}, place / parts, block_x() % {4}, {4}, k);\n"
      "  expert_gemm::RowLoader<A, Tile::PanelA, Tile::kThreads, {8}> a;\n"
      "  a.start(A_, part, block, k);\n  ",
      gemm::tile_type(tile, dtype, gemm::Major::k, form.b.major), source.number(rows.rows), source.number(form.n),
      source.number(form.k), tile.splits, source.number(parts), rows.find(source, blocks.parts(), kIds, shared),
      rows.experts, form.a.width);
  call += gemm::dense_loader(source, right, tile);
  call += fmt::format(
      "char* const shared = reinterpret_cast<char*>(dynamic_shared());\n"
      "  Tile tile;\n"
      "  tile.clear();\n"
      "  gemm::main_loop<false, gemm::NextBegins::kWhenSummed>(tile, a, b, block.blocks, shared);\n"
      "  gemm::{}, {}, {}>(tile, {}, block.row, m, block.column, n, shared);",
      store, sink.down, sink.whole, sink.text);
  SourceLaunch launch = source.finish(call, {parts * ceildiv(form.n, tile.n) * tile.splits, 1, 1},
                                      static_cast<uint32_t>(gemm::threads(tile)),
                                      static_cast<uint32_t>(shared + rows.shared_bytes(blocks.parts())));
  if (tile.cluster) launch.launch.cluster = static_cast<uint32_t>(tile.splits);
  return launch;
}

// K-major, each expert's matrix behind the one before.
Result<Packed> pack_weights(const Problem& problem) {
  const Tensor& weights = *problem.inputs[1].constant;
  const bool transposed = problem.attrs<ExpertMatmulAttrs>().transpose_w;
  const int64_t experts = weights.dims()[0], k = weights.dims()[transposed ? 2 : 1],
                n = weights.dims()[transposed ? 1 : 2], pitch = packed_pitch(weights, k);
  return pack(Known{weights, nullptr}, {experts, n, pitch},
              {{experts, k * n, n * pitch}, {n, transposed ? k : 1, pitch}, {k, transposed ? 1 : n, 1}});
}

Result<Emission> emit(const Problem& problem, const ExpertGemm& form, const Config& config) {
  const auto& blocks = config.as<Blocks>();
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0},
                     {form.packs ? StepInput::packed : StepInput::input, form.packs ? 0u : 1u},
                     {StepInput::input, 2}};
  add_operand_inputs(problem, emission);
  Operand b = problem.inputs[1];
  if (form.packs) {
    LATHE_ASSIGN(Packed packed, pack_weights(problem));
    b = packed_operand(packed);
    emission.packed.push_back(std::move(packed));
  }
  form.rows.add_sorting(blocks.parts(), kIds, 1, emission);
  emission.launches.push_back(multiplying(problem, form, blocks, b, emission));
  return emission;
}

}  // namespace

Matched match_expert_gemm(const Problem& problem) {
  ExpertGemm form;
  if (auto reason = describe(problem, form)) return refuse(*std::move(reason));
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
