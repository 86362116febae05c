// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/epilogue_tactic.h"

#include <algorithm>

#include "kernels/cuda/match.h"
#include "ops/rules.h"

namespace lathe::cuda::gemm {
namespace {

constexpr int64_t kPartialVector = 8;  // rows of partial sums are whole multiples of it
constexpr uint32_t kReduceThreads = 128;
constexpr int64_t kMostPairs = 8;  // columns that make pairs

// The type of the op's own result.
DType result_dtype(const Ending& e) {
  const bool widens = e.problem.is(OpKind::matmul) || e.problem.is(OpKind::convolution);
  return widens ? sum_dtype(e.dtype) : e.dtype;
}

}  // namespace

Expr partial_pitch(const Ending& e) { return ceildiv(e.n, kPartialVector) * kPartialVector; }

Sink fused_sink(Source& source, const Ending& e) {
  const Operand& out = e.problem.outputs[0];
  source.output(0, out, "C");
  source.rounding_fusion(e.problem, e.first_operand);
  const std::string rows =
      e.rows ? e.rows(source) : fmt::format("gemm::AllRows<{}, {}>{{batch * m}}", e.dimension, e.column_dims);
  Sink sink{.text = fmt::format("gemm::fused_sink<{}, {}, {}, {}>(C_, fusion_, {}, {})", e.dimension, e.column_dims,
                                device_type(result_dtype(e)), accumulator_type(e.dtype), rows, e.column),
            .vector = fused_vector(e),
            .down = unit_dim(out) != e.dimension,
            .whole = true};
  if (e.problem.pairs) sink.text = fmt::format("gemm::pair_sink<{}>(C_, fusion_, {}, {})", e.dimension, rows, e.column);
  if (!sink.down) sink.whole = mod(e.n, sink.vector) == Expr(0);
  return sink;
}

std::string tile_type(const TileShape& tile, const Ending& e, Major major_a, Major major_b) {
  std::string type = tile_type(tile, e.dtype, major_a, major_b);
  if (!e.scales) return type;
  return fmt::format("gemm::Scaled{}Tile<{}, {}>", tile.unit == TileShape::tensor_core ? "Mma" : "Panel", type,
                     e.scales_type);
}

int64_t fused_vector(const Ending& e) {
  const Operand& out = e.problem.outputs[0];
  if (unit_dim(out) != e.dimension) return 1;
  int64_t vector = store_width(out, e.dimension, e.column_dims);
  if (e.problem.pairs) vector = std::min<int64_t>(2 * vector, kMostPairs);
  // Each matrix begins with a whole vector.
  while (e.column != "0L" && vector > 1 && mod(e.n, vector) != Expr(0)) vector /= 2;
  return vector;
}

bool stores_by_rows(const Ending& e) {
  constexpr int64_t kMostBytes = 4;  // of an access that is worse than one along a row
  const Operand& out = e.problem.outputs[0];
  const auto size = static_cast<int64_t>(size_of(out.dtype));
  const bool is_plain = !e.problem.pairs && !e.rows && e.column == "0L" && e.column_dims == 1;
  return is_plain && is_floating(out.dtype) && size <= kMostBytes && unit_dim(out) == e.dimension &&
         vector_width(out) * size <= kMostBytes && mod(e.n, vector_width(out)) == Expr(0) &&
         accumulator_type(e.dtype) == "float";
}

int64_t store_width(const Operand& output, int dimension, size_t column_dims) {
  const auto size = static_cast<int64_t>(size_of(output.dtype));
  int64_t width = size == 1 ? 16 : std::min<int64_t>(8, 16 / size);
  // No vector crosses from one run of columns to the next.
  while (column_dims > 1 && width > 1 && mod(output.dims[static_cast<size_t>(dimension)], width) != Expr(0)) width /= 2;
  return width;
}

bool stores_vectors(const Operand& output, int dimension, size_t column_dims) {
  constexpr int64_t kLeastBytes = 8;
  return store_width(output, dimension, column_dims) * static_cast<int64_t>(size_of(output.dtype)) >= kLeastBytes;
}

std::optional<std::string> refuse_pairs(const Problem& problem) {
  if (!problem.pairs) return std::nullopt;
  const Operand& output = problem.outputs[0];
  if (!output.reassociation.empty() || unit_dim(output) != output.rank() - 1)
    return "pairs of columns whose results are no neighbours";
  if (!is_short_float(problem.inputs[0].dtype)) return "pairs of columns that are no short floats";
  return std::nullopt;
}

std::optional<std::string> refuse_columns(const Operand& output) {
  if (output.reassociation.empty() || output.reassociation.back() == 1) return std::nullopt;
  if (output.reassociation.back() == 0) return "a result of one column";
  const int last = output.rank() - 1;
  if (unit_dim(output) != last || !stores_vectors(output, last, output.reassociation.back()))
    return "columns in runs that no vector fits";
  return std::nullopt;
}

Expr partial_bytes(const Ending& e, int64_t splits) {
  if (!e.keeps_sums(splits)) return 0;
  return e.batch * splits * e.m * partial_pitch(e) * static_cast<int64_t>(accumulator_size(e.dtype));
}

Sink declare_sink(Source& source, const Ending& e, int64_t splits, Emission& emission) {
  if (!e.keeps_sums(splits)) return fused_sink(source, e);
  const Expr pitch = partial_pitch(e);
  source.workspace("partials", 0, accumulator_type(e.dtype));
  emission.workspace = partial_bytes(e, splits);
  const std::string part = splits == 1 ? "batch" : fmt::format("(batch * {} + block.split)", splits);
  return {.text = fmt::format("gemm::PartialSink<{0}>{{partials + {1} * m * {2}, {2}}}", accumulator_type(e.dtype),
                              part, source.number(pitch)),
          .vector = 4,
          .down = false,
          .whole = true};
}

void add_reduction(const Ending& e, int64_t splits, Emission& emission) {
  if (e.normalization) return add_normalization(e, splits, emission);
  if (splits == 1) return;
  Source source(e.header);
  const Sink sink = fused_sink(source, e);
  source.workspace("partials", 0, accumulator_type(e.dtype));
  const int64_t vector = std::min(sink.vector, kPartialVector);
  const std::string call = fmt::format(
      "const long m = {0}, n = {1};\n"
      "  gemm::reduce_splits<{2}, {4}>(partials, m, n, {3}, {5}, [&](long batch) {{\n"
      "    return {6};\n"
      "  }});",
      source.number(e.m), source.number(e.n), vector, source.number(partial_pitch(e)), splits, source.number(e.batch),
      sink.text);
  const Expr vectors = e.batch * e.m * ceildiv(e.n, vector);
  emission.launches.push_back(source.finish(call, {ceildiv(vectors, kReduceThreads), 1, 1}, kReduceThreads, 0));
}

std::string declare_product(Source& source, const TileShape& tile, std::string_view tile_type, const Expr& m,
                            const Expr& n, const Expr& k) {
  return fmt::format(
      "using Tile = {};\n"
      "  const long m = {}, n = {}, k = {};\n"
      "  const gemm::Block block = gemm::block_of<Tile, {}>(m, n, k, {});\n"
      "  const long batch = block.batch;\n  ",
      tile_type, source.number(m), source.number(n), source.number(k), tile.cluster, tile.splits);
}

std::string dense_loader_type(const DenseOperand& o, const TileShape& tile) {
  const bool first = o.loader == "a", mn_major = o.major == Major::mn;
  const bool whole_outer = mod(o.outer, first ? tile.m : tile.n) == Expr(0), whole_k = mod(o.k, tile.k) == Expr(0);
  return fmt::format("gemm::DenseLoader<{}::Type, Tile::Panel{}, Tile::kThreads, {}, {}, {}, {}>", o.tensor,
                     first ? "A" : "B", o.width, mn_major, mn_major ? whole_k : whole_outer,
                     mn_major ? whole_outer : whole_k);
}

std::string dense_loader_start(Source& source, const DenseOperand& o) {
  return fmt::format("{}_.data{}, {}, {}, {}, block, k", o.tensor, o.offset, source.number(o.pitch),
                     o.loader == "a" ? "block.row" : "block.column", source.number(o.outer));
}

std::string dense_loader(Source& source, const DenseOperand& o, const TileShape& tile) {
  return fmt::format("{0} {1};\n  gemm::start_dense<{2}>({1}, {3});\n  ", dense_loader_type(o, tile), o.loader,
                     o.major == Major::mn, dense_loader_start(source, o));
}

int copy_width(DType dtype, std::span<const Expr> strides) {
  const auto size = static_cast<int64_t>(size_of(dtype));
  int64_t width = 16 / size;
  const auto fits = [&](const Expr& stride) { return mod(stride, width) == Expr(0); };
  while (width > 1 && !std::all_of(strides.begin(), strides.end(), fits)) width /= 2;
  return width * size < 4 ? 1 : static_cast<int>(width);
}

void finish(Source& source, std::string body, const TileShape& tile, const Ending& e, Emission& emission) {
  const int64_t kept = tile.cluster ? 1 : tile.splits;
  const Sink sink = declare_sink(source, e, kept, emission);
  const std::string store = tile.adds_sums()
                                ? fmt::format("store_sums<{}, {}", sink.vector, tile.cluster ? tile.splits : 1)
                                : fmt::format("store_tile<{}, {}", sink.vector, slabs(tile, e.dtype));
  if (e.scales) body += e.scales(source);
  body += fmt::format(
      "char* const shared = reinterpret_cast<char*>(dynamic_shared());\n"
      "  Tile tile;\n"
      "  tile.clear();\n"
      "  {}"
      "gemm::main_loop<{}, gemm::NextBegins::{}>(tile, a, b, block.blocks, shared);\n"
      "  gemm::{}, {}, {}>(tile, {}, block.row, m, block.column, n, shared);",
      e.scales ? "tile.begin(scales, block);\n  " : "", e.weights_first, e.next_begins, store, sink.down, sink.whole,
      sink.text);
  const Expr blocks = ceildiv(e.m, tile.m) * ceildiv(e.n, tile.n) * tile.splits * e.batch;
  emission.launches.push_back(source.finish(body, {blocks, 1, 1}, static_cast<uint32_t>(threads(tile)),
                                            static_cast<uint32_t>(shared_bytes(tile, e.dtype))));
  if (tile.cluster) emission.launches.back().launch.cluster = static_cast<uint32_t>(tile.splits);
  add_reduction(e, kept, emission);
}

Extent extent_of(const Problem& problem, Major major_a, Major major_b) {
  Extent e;
  e.dtype = problem.inputs[0].dtype;
  e.output = problem.outputs[0].dtype;
  e.tensor_core = has_tensor_core(problem, major_a) && has_tensor_core(problem, major_b);
  e.major_a = major_a, e.major_b = major_b;
  e.target = problem.target;
  e.operands = whole_operands(problem);
  e.functions = dear_functions(problem.program);
  e.instructions = static_cast<int64_t>(problem.program.code.size());
  return e;
}

bool has_tensor_core(const Problem& problem, Major major) {
  switch (problem.inputs[0].dtype) {
    case DType::f16:
    case DType::bf16:
      return is_matrix_half(problem.target, problem.inputs[0].dtype);
    case DType::i8:
      return major == Major::k;
    case DType::f8e4m3fn:
    case DType::f8e5m2:
      return major == Major::k && problem.target.limits.float8;
    case DType::f32:
      return problem.tf32;
    default:
      return false;
  }
}

}  // namespace lathe::cuda::gemm
