// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/pipeline_tactic.h"

#include <algorithm>

#include "kernels/cuda/match.h"

namespace lathe::cuda::gemm {
namespace {

constexpr int64_t kRowBytes = 128;  // of a panel, as the copy engine writes it
constexpr size_t kMatrixDims = 2;   // of a tensor map; the batch's follow
constexpr int64_t kWidest = 8;      // columns that store_quads() gives a thread, unless it has more neighbours

bool is_mapped(const Product& p, const Matrix& matrix, DType dtype) {
  constexpr int64_t kAligned = 16;  // bytes: addresses and strides
  const auto moving = std::count_if(matrix.batch_strides.begin(), matrix.batch_strides.end(),
                                    [](const Expr& stride) { return stride != Expr(0); });
  return !matrix.has_several_strides() && matrix.width * static_cast<int64_t>(size_of(dtype)) == kAligned &&
         matrix.batch_strides.size() == p.batch.size() && static_cast<size_t>(moving) + kMatrixDims <= kMaxMapRank;
}

// Makes a map of B bring columns n q + 2 j + e of each 4 n in the order of j, q and e, in which thread q of four has
// the sums of n neighbours.
void order_by_neighbours(TensorMap& map, int64_t n) {
  const Expr pitch = map.strides[0], columns = map.dims[1];
  const uint32_t count = map.box[1];
  const int64_t group = neighbour_group(n);
  map.dims = {map.dims[0], 2, 4, n / 2, floordiv(columns, group)};
  map.strides = {pitch, n * pitch, 2 * pitch, group * pitch};
  map.box = {map.box[0], 2, 4, static_cast<uint32_t>(n / 2), count / static_cast<uint32_t>(group)};
}

// Declares the map and the function that says where in it the matrix of a batch lies.
std::string declare_map(Source& source, const Product& p, const TileShape& tile, DType dtype, bool first) {
  const Matrix& matrix = first ? p.a : p.b;
  const Expr& outer = first ? p.m : p.n;
  const auto elements = static_cast<uint32_t>(kRowBytes / static_cast<int64_t>(size_of(dtype)));
  const auto rows = static_cast<uint32_t>(first ? tile.m : tile.n / tile.peers);
  const bool mn_major = matrix.major == Major::mn;
  TensorMap map{first ? 0u : 1u, dtype, dtype == DType::f32, {}, {}, {}, {}};
  map.dims = mn_major ? Shape{outer, p.k} : Shape{p.k, outer};
  map.strides = {matrix.pitch};
  map.box = {elements, mn_major ? elements : rows};
  std::string places;
  for (size_t d = 0; d < p.batch.size(); ++d) {
    if (matrix.batch_strides[d] == Expr(0)) continue;
    Expr inner = 1;
    for (size_t i = d + 1; i < p.batch.size(); ++i) inner *= p.batch[i];
    places += fmt::format(", static_cast<int>(block.batch / {} % {})", source.number(inner), source.number(p.batch[d]));
    map.dims.push_back(p.batch[d]);
    map.strides.push_back(matrix.batch_strides[d]);
    map.box.push_back(1);
  }
  if (!first && tile.neighbours > 0) order_by_neighbours(map, tile.neighbours);
  const std::string_view name = first ? "a" : "b";
  const size_t rank = map.dims.size();
  source.tensor_map(std::move(map), fmt::format("map_{}", name));
  return fmt::format(
      "const auto place_{} = [&](const gemm::Block& block) {{ return gemm::MapPlace<{}>{{{{0, 0{}}}}}; }};\n  ", name,
      rank, places);
}

}  // namespace

bool can_copy(const Problem& problem, const Product& p, const Ending& ending) {
  const DType dtype = problem.inputs[0].dtype;
  if (!problem.target.limits.warpgroups || problem.inputs[0].is_computed()) return false;
  if (!has_tensor_core(problem, Major::k)) return false;
  if (size_of(dtype) != 2 && (p.a.major == Major::mn || p.b.major == Major::mn)) return false;
  return is_mapped(p, p.a, dtype) && is_mapped(p, p.b, dtype) && fused_vector(ending) > 1;
}

int64_t neighbours(const Product& p, const Ending& ending) {
  const bool is_one = std::ranges::all_of(p.b.batch_strides, [](const Expr& stride) { return stride == Expr(0); });
  if (!is_one || p.b.major != Major::k) return 0;
  const bool is_integer = lathe::is_integer(ending.problem.outputs[0].dtype);
  for (const int64_t wanted : {2 * kWidest, kWidest})
    if ((wanted == kWidest || is_integer) && fused_vector(ending) >= wanted &&
        mod(p.n, neighbour_group(wanted)) == Expr(0))
      return wanted;
  return 0;
}

void finish_pipeline(const Problem& problem, const Product& p, const TileShape& tile, const Ending& e,
                     Emission& emission) {
  const DType dtype = problem.inputs[0].dtype;
  Source source("gemm/pipeline.cuh");
  if (e.scales) source.include("gemm_scaled/gemm_scaled.cuh");
  const Expr works = ceildiv(e.m, tile.m * tile.peers) * ceildiv(e.n, tile.n) * tile.splits * e.batch;
  std::string body = fmt::format(
      "using Tile = {};\n"
      "  const long m = {}, n = {}, k = {};\n  ",
      tile_type(tile, e, p.a.major, p.b.major), source.number(e.m), source.number(e.n), source.number(p.k));
  body += p.declare_a ? p.declare_a(source, tile) : declare_map(source, p, tile, dtype, true);
  body += declare_map(source, p, tile, dtype, false);
  Sink sink = declare_sink(source, e, tile.splits, emission);
  if (tile.by_rows) {
    const Operand& out = e.problem.outputs[0];
    sink.text = fmt::format("gemm::row_sink<{}, {}>({}, shared + {})", vector_width(out), device_type(out.dtype),
                            sink.text, staged_rows_begin(tile, dtype));
  }
  std::string begin;
  if (e.scales) {
    body += e.scales(source);
    begin = fmt::format(", [&](Tile& tile, const gemm::Block& block) {{ tile.begin(scales, block, shared + {}); }}",
                        scales_begin(tile, dtype));
  }
  const std::optional<int64_t> known_k = p.k.as_constant();  // each tile has a panel
  const bool ahead = known_k && *known_k > 0 && runs_ahead(tile, extent_of(e.problem));
  body += fmt::format(
      "const auto work = [&](unsigned i) {{ return gemm::work_of<Tile>(i, m, n, k, {}); }};\n"
      "  const auto product = gemm::pipeline_product(&map_a, &map_b, {}, work, place_a, place_b);\n"
      "  char* const shared = reinterpret_cast<char*>(dynamic_shared());\n"
      "  gemm::run_pipeline<Tile, {}, {}>(product, shared,\n"
      "                               [&](const Tile::Sums& sums, const gemm::Block& block) {{\n"
      "    const long batch = block.batch;\n"
      "    gemm::store_quads<{}, {}, {}, {}, {}>(sums, {}, block.row, m, block.column, n);\n"
      "  }}{});",
      tile.splits, source.number(works), e.weights_first, ahead,
      std::max(tile.neighbours, std::min(sink.vector, kWidest)), sink.whole,
      e.keeps_sums(tile.splits) ? "true" : "Fusion::kShort", tile.neighbours, ahead ? 1 : 2, sink.text, begin);
  const Expr blocks = min(works, Expr(problem.target.cores / tile.peers)) * tile.peers;
  emission.launches.push_back(source.finish(body, {blocks, 1, 1}, static_cast<uint32_t>(threads(tile)),
                                            static_cast<uint32_t>(shared_bytes(tile, dtype))));
  emission.launches.back().launch.cluster = static_cast<uint32_t>(tile.peers);
  add_reduction(e, tile.splits, emission);
}

}  // namespace lathe::cuda::gemm
