// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/epilogue_tactic.h"

#include <algorithm>

namespace lathe::cuda::gemm {
namespace {

constexpr int64_t kPartialVector = 8;  // rows of partial sums are whole multiples of it
constexpr uint32_t kReduceThreads = 128;

struct Store {
  int64_t vector;  // columns at once
  bool down;       // neighbouring threads take neighbouring rows
  bool whole;      // the columns are a multiple of the vector
};

Store store_of(const Ending& e) {
  const Operand& out = e.problem.outputs[0];
  if (unit_dim(out) != e.dimension) return {1, true, true};
  int64_t vector = std::min<int64_t>(8, 16 / static_cast<int64_t>(size_of(out.dtype)));
  while (e.batch_is_columns && vector > 1 && mod(e.n, vector) != Expr(0)) vector /= 2;  // each begins with a vector
  return {vector, false, mod(e.n, vector) == Expr(0)};
}

// The sink of the matrix `batch`; declares what it names.
std::string fused_sink(const Ending& e) {
  const std::string_view along = e.batch_is_columns ? "0L, batch * n" : "batch * m, 0L";
  return fmt::format("gemm::FusedSink<{}, {}, C, Fusion>{{C_, fusion_, {}}}", e.dimension, device_type(e.dtype), along);
}

void add_output(Source& source, const Ending& e) {
  source.output(0, e.problem.outputs[0], "C");
  source.fusion(e.problem, 2);
}

SourceLaunch reduction(const Tile& tile, const Ending& e, const Expr& pitch) {
  const Store store = store_of(e);
  Source source("gemm/gemm.cuh");
  add_output(source, e);
  source.workspace("partials", 0, accumulator_type(e.dtype));
  const std::string call = fmt::format(
      "const long m = {0}, n = {1};\n"
      "  gemm::reduce_splits<{2}>(partials, m, n, {3}, {4}, {5}, [&](long batch) {{\n"
      "    return {6};\n"
      "  }});",
      source.number(e.m), source.number(e.n), store.vector, source.number(pitch), tile.splits, source.number(e.batch),
      fused_sink(e));
  const Expr vectors = e.batch * e.m * ceildiv(e.n, store.vector);
  return source.finish(call, {ceildiv(vectors, kReduceThreads), 1, 1}, kReduceThreads, 0);
}

}  // namespace

std::string dense_loader(Source& source, const DenseOperand& o, const Tile& tile) {
  const bool first = o.loader == "a";
  const bool whole_outer = mod(o.outer, first ? tile.m : tile.n) == Expr(0), whole_k = mod(o.k, tile.k) == Expr(0);
  return fmt::format(
      "gemm::DenseLoader<{0}::Type, Tile::Panel{1}, Tile::kThreads, {2}, {3}, {4}, {5}> {6};\n"
      "  gemm::start_dense<{3}>({6}, {0}_.data{7}, {8}, {9}, {10}, block, k);\n  ",
      o.tensor, first ? "A" : "B", o.width, o.across, o.across ? whole_k : whole_outer,
      o.across ? whole_outer : whole_k, o.loader, o.offset, source.number(o.pitch),
      first ? "block.row" : "block.column", source.number(o.outer));
}

int copy_width(DType dtype, std::span<const Expr> strides) {
  const auto size = static_cast<int64_t>(size_of(dtype));
  int64_t width = 16 / size;
  const auto fits = [&](const Expr& stride) { return mod(stride, width) == Expr(0); };
  while (width > 1 && !std::all_of(strides.begin(), strides.end(), fits)) width /= 2;
  return width * size < 4 ? 1 : static_cast<int>(width);
}

Operand packed_operand(const Tensor& packed) {
  Operand operand;
  operand.dtype = packed.dtype();
  operand.dims = to_shape(packed.dims());
  operand.strides = dense_strides(operand.dims, Layout::linear);
  return operand;
}

void finish(Source& source, std::string body, const Tile& tile, const Ending& e, Emission& emission) {
  const Store store = store_of(e);
  const Expr pitch = ceildiv(e.n, kPartialVector) * kPartialVector;
  std::string sink, options;
  if (tile.splits == 1) {
    add_output(source, e);
    sink = fused_sink(e);
    options = fmt::format("{}, {}, {}, {}", store.vector, slabs(tile, e.dtype), store.down, store.whole);
  } else {
    source.workspace("partials", 0, accumulator_type(e.dtype));
    sink = fmt::format("gemm::PartialSink<{0}>{{partials + (batch * {1} + block.split) * m * {2}, {2}}}",
                       accumulator_type(e.dtype), tile.splits, source.number(pitch));
    options = fmt::format("4, {}, false, true", slabs(tile, e.dtype));
    emission.workspace = e.batch * tile.splits * e.m * pitch * static_cast<int64_t>(accumulator_size(e.dtype));
  }
  body += fmt::format(
      "char* const shared = reinterpret_cast<char*>(dynamic_shared());\n"
      "  Tile tile;\n"
      "  tile.clear();\n"
      "  gemm::main_loop<{}>(tile, a, b, block.blocks, shared);\n"
      "  dependency_release();\n"
      "  gemm::store_tile<{}>(tile, {}, block.row, m, block.column, n, shared);",
      e.weights_first, options, sink);
  const Expr blocks = ceildiv(e.m, tile.m) * ceildiv(e.n, tile.n) * tile.splits * e.batch;
  emission.launches.push_back(source.finish(body, {blocks, 1, 1}, static_cast<uint32_t>(threads(tile)),
                                            static_cast<uint32_t>(shared_bytes(tile, e.dtype))));
  if (tile.splits > 1) emission.launches.push_back(reduction(tile, e, pitch));
}

bool has_tensor_core(const Problem& problem, bool across) {
  switch (problem.inputs[0].dtype) {
    case DType::f16:
    case DType::bf16:
      return true;
    case DType::i8:
      return !across;
    case DType::f32:
      return problem.tf32;
    default:
      return false;
  }
}

}  // namespace lathe::cuda::gemm
