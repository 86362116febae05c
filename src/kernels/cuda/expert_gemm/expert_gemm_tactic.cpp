// SPDX-License-Identifier: Apache-2.0
// Rows times the matrices of their experts, by the tiles of matrix products.
#include <algorithm>

#include "base/divide.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/match.h"
#include "kernels/pack_tactic.h"
#include "shape/broadcast.h"
#include "tuning/work.h"

namespace lathe::cuda {
namespace {

using gemm::TileShape;

struct ExpertGemm {
  Expr rows, n, k;
  int64_t experts = 0, opt_rows = 0;
  Operand x, ids;      // of the rows' dimensions
  gemm::Matrix a, b;   // b: of an expert, whose batch stride is from one to the next
  bool packs = false;  // B is constant: packed K-major, rows padded to 16 bytes
  bool is_strict = false;
};

// The choice: rows are sorted by a launch of their own, or each block looks for its own among few.
struct Blocks {
  TileShape tile;
  bool sorts = false;
};

constexpr int64_t kVectorBytes = 16;
constexpr uint32_t kSortThreads = 512;

int64_t packed_pitch(const Tensor& weights, int64_t k) {
  return round_up(k, kVectorBytes / static_cast<int64_t>(size_of(weights.dtype())));
}

std::optional<std::string> describe_weights(const Problem& problem, ExpertGemm& form) {
  const Operand& b = problem.inputs[1];
  const size_t k = problem.attrs<ExpertMatmulAttrs>().transpose_w ? 2 : 1, n = 3 - k;
  form.k = b.dims[k], form.n = b.dims[n];
  const std::optional<int64_t> experts = b.dims[0].as_constant();
  if (!experts || *experts == 0 || form.k == Expr(0) || form.n == Expr(0)) return "no known number of matrices";
  form.experts = *experts;
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
  if (auto reason = unsupported_feature(problem, {})) return reason;
  const Operand &x = problem.inputs[0], &out = problem.outputs[0];
  if (!is_short_float(x.dtype)) return fmt::format("elements of type {}", name_of(x.dtype));
  if (out.rank() < 2) return "a single row";
  if (auto reason = describe_weights(problem, form)) return reason;
  form.is_strict = problem.attrs<ExpertMatmulAttrs>().strict;
  Operand rows = out;
  rows.take_out_dim(out.dims.size() - 1);
  form.ids = broadcast(problem.inputs[2], rows);
  rows.append_dim(x.dim(x.dims.size() - 1));
  form.x = broadcast(x, rows);
  form.rows = 1;
  for (size_t d = 0; d + 1 < out.dims.size(); ++d) form.rows *= out.dims[d];
  form.opt_rows = static_cast<int64_t>(volume_of(Dims(out.opt_dims.begin(), out.opt_dims.end() - 1)));
  if (x.strides.back() != Expr(1) && form.k != Expr(1)) return "the elements of a row are not neighbours";
  Shape strides(form.x.strides.begin(), form.x.strides.end() - 1);
  strides.push_back(x.offset);
  form.a.width = gemm::copy_width(x.dtype, strides);
  return std::nullopt;
}

// As many rows for each expert as there are on average.
gemm::Extent extent_of(const Problem& problem, const ExpertGemm& form) {
  gemm::Extent e = gemm::extent_of(problem, gemm::Major::k, form.b.major);
  e.batch = std::clamp<int64_t>(form.opt_rows, 1, form.experts);
  e.m = std::max<int64_t>(ceil_div(form.opt_rows, e.batch), 1);
  e.n = problem.outputs[0].opt_dims.back(), e.k = form.x.opt_dims.back();
  e.copy_width = form.a.width;
  return e;
}

std::vector<Config> configs(const Problem& problem, const ExpertGemm& form) {
  constexpr size_t kMostConfigs = 12;
  constexpr int64_t kFewRows = 64, kLanes = 32;
  const double sort_us = 1.5 * problem.target.launch_us;
  std::vector<Config> configs;
  for (const Config& each : gemm::every_config(extent_of(problem, form))) {
    const auto& tile = each.as<TileShape>();
    if (tile.splits > 1 && !tile.cluster) continue;
    configs.push_back(
        {.text = each.text + " sorted", .predicted_us = each.predicted_us + sort_us, .choice = Blocks{tile, true}});
    if (form.opt_rows <= kFewRows && tile.m <= kLanes)
      configs.push_back({.text = each.text + " few", .predicted_us = each.predicted_us, .choice = Blocks{tile, false}});
  }
  return best_first(std::move(configs), kMostConfigs);
}

// As many parts as there can be.
Expr parts_of(const ExpertGemm& form, const Blocks& blocks) {
  if (!blocks.sorts) return form.rows;
  return min(form.rows, floordiv(form.rows, blocks.tile.m) + form.experts + 1);
}

SourceLaunch sorting(const ExpertGemm& form, const Blocks& blocks) {
  Source source("expert_gemm/expert_gemm.cuh");
  source.input(2, form.ids, "Ids");
  source.workspace("schedule", 0, "int32");
  const std::string call = fmt::format("expert_gemm::sort_rows<{}, {}>(Ids_, {}, {}, schedule);", blocks.tile.m,
                                       form.is_strict, source.number(form.rows), form.experts);
  return source.finish(call, {1, 1, 1}, kSortThreads, static_cast<uint32_t>((form.experts + 1) * sizeof(int32_t)));
}

gemm::Ending ending_of(const Problem& problem, const ExpertGemm& form) {
  const int last = problem.outputs[0].rank() - 1;
  gemm::Ending ending{problem, problem.inputs[0].dtype, last, form.rows, form.n, 1, {}};
  ending.rows = [last](Source&) { return fmt::format("expert_gemm::PartRows<{}>{{part.order}}", last); };
  ending.header = "expert_gemm/expert_gemm.cuh";
  ending.first_operand = 3;
  return ending;
}

std::string find_part(Source& source, const ExpertGemm& form, const Blocks& blocks) {
  if (blocks.sorts) {
    source.workspace("schedule", 0, "int32");
    return "find_sorted(schedule, rows, number, part)";
  }
  source.input(2, form.ids, "Ids");
  return fmt::format(
      "find_among_few<{}, {}>(Ids_, rows, {}, number, reinterpret_cast<int*>(dynamic_shared() + {}), part)",
      blocks.tile.m, form.is_strict, form.experts, gemm::shared_bytes(blocks.tile, form.x.dtype));
}

SourceLaunch multiplying(const Problem& problem, const ExpertGemm& form, const Blocks& blocks, const Operand& b,
                         Emission& emission) {
  const TileShape& tile = blocks.tile;
  const DType dtype = form.x.dtype;
  Source source("expert_gemm/expert_gemm.cuh");
  source.input(0, form.x, "A");
  source.input(1, b, "B");
  const gemm::Ending ending = ending_of(problem, form);
  const gemm::Sink sink = gemm::declare_sink(source, ending, 1, emission);
  const std::string store = tile.adds_sums()
                                ? fmt::format("store_sums<{}, {}", sink.vector, tile.cluster ? tile.splits : 1)
                                : fmt::format("store_tile<{}, {}", sink.vector, gemm::slabs(tile, dtype));
  const gemm::DenseOperand right{
      "b",
      "B",
      fmt::format(" + part.expert % {} * {}", form.experts, source.number(form.b.batch_strides[0])),
      form.b.pitch,
      form.b.width,
      form.b.major,
      form.n,
      form.k};
  const Expr parts = parts_of(form, blocks);
  std::string call = fmt::format(
      "using Tile = {0};\n"
      "  const long rows = {1}, n = {2}, k = {3};\n"
      "  const unsigned place = static_cast<unsigned>(block_x()) / {4}u, parts = static_cast<unsigned>({5});\n"
      "  const int number = static_cast<int>(place % parts);\n"
      "  expert_gemm::Part part;\n"
      "  if (!expert_gemm::{6}) return;\n"
      "  const long m = part.end;\n"
      "  const gemm::Block block =\n"
      "      expert_gemm::block_of<Tile>(part, {7}, place / parts, block_x() % {4}, {4}, k);\n"
      "  expert_gemm::RowLoader<A, Tile::PanelA, Tile::kThreads, {8}> a;\n"
      "  a.start(A_, part, block, k);\n  ",
      gemm::tile_type(tile, dtype, gemm::Major::k, form.b.major), source.number(form.rows), source.number(form.n),
      source.number(form.k), tile.splits, source.number(parts), find_part(source, form, blocks), form.experts,
      form.a.width);
  call += gemm::dense_loader(source, right, tile);
  call += fmt::format(
      "char* const shared = reinterpret_cast<char*>(dynamic_shared());\n"
      "  Tile tile;\n"
      "  tile.clear();\n"
      "  gemm::main_loop<false>(tile, a, b, block.blocks, shared);\n"
      "  gemm::{}, {}, {}>(tile, {}, block.row, m, block.column, n, shared);",
      store, sink.down, sink.whole, sink.text);
  const int64_t order_bytes = blocks.sorts ? 0 : tile.m * static_cast<int64_t>(sizeof(int32_t));
  SourceLaunch launch = source.finish(call, {parts * ceildiv(form.n, tile.n) * tile.splits, 1, 1},
                                      static_cast<uint32_t>(gemm::threads(tile)),
                                      static_cast<uint32_t>(gemm::shared_bytes(tile, dtype) + order_bytes));
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
    b = packed_operand(packed.content);
    emission.packed.push_back(std::move(packed));
  }
  if (blocks.sorts) emission.launches.push_back(sorting(form, blocks));
  emission.launches.push_back(multiplying(problem, form, blocks, b, emission));
  if (blocks.sorts)
    emission.workspace = (form.rows + 1 + 3 * parts_of(form, blocks)) * static_cast<int64_t>(sizeof(int32_t));
  return emission;
}

}  // namespace

Matched match_expert_gemm(const Problem& problem) {
  ExpertGemm form;
  if (auto reason = describe(problem, form)) return refuse(*std::move(reason));
  if ((form.experts + 1) * static_cast<int64_t>(sizeof(int32_t)) > problem.target.limits.shared_bytes)
    return refuse("more experts than shared memory has room for their rows");
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
