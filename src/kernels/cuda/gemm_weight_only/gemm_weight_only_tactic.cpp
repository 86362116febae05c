// SPDX-License-Identifier: Apache-2.0
// Products by constant weights of 4 and 8 bits, at the speed of memory where rows are few.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/divide.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/gemm/matrices_tactic.h"
#include "kernels/cuda/gemv/stream_tactic.h"
#include "kernels/cuda/match.h"
#include "ops/rules.h"
#include "tuning/packed_weights.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kColumns = gemv::kStreamColumns, kPanel = gemv::kStreamPanel;

struct WeightOnly {
  gemm::Product product;
  PackedWeights weights;
  DType dtype = DType::f16;
  int width = 0;                // elements of A that are read at once; 0 = they lie apart
  Expr row = {}, element = {};  // A's strides
  int64_t opt_m = 0;
  bool has_zeros = false;
  bool is_scalar = false;  // matrix units do not multiply the type

  int64_t slices() const { return ceil_div(weights.n(), kColumns); }
  int64_t panels() const { return ceil_div(weights.k(), kPanel); }
  DType scale_type() const { return is_scalar ? DType::f32 : dtype; }
  int offset(int64_t n) const {  // offset_of() in gemm_weight_only.cuh
    const DType dtype = scale_type();
    if (dtype == DType::f16) return weights.bits() == 4 && n % kColumns >= kColumns / 2 ? 64 : 1024;
    return dtype == DType::bf16 && weights.bits() == 4 ? 128 : 0;
  }
  int64_t blocks() const { return ceil_div(weights.k(), weights.block()); }
};

// ---- packing

// Where a code of a panel is in B, and in the panel's words.
struct Place {
  int n, k, word, shift;
};

// In which of a lane's columns and elements of K the codes of its words are: see dequantize_step().
std::vector<Place> places_of(int bits) {
  const int per_word = 32 / bits, pairs = per_word / 2, vectors = bits / 4;
  std::vector<Place> places;
  for (int lane = 0; lane < 32; ++lane)
    for (int word = 0; word < bits; ++word)
      for (int code = 0; code < per_word; ++code) {
        const int step = word / vectors, pair = word % vectors * pairs + code % pairs, high = code / pairs;
        places.push_back({lane / 4 + pair % 2 * 8, lane % 4 * 16 + step * 4 + pair / 2 * 2 + high,
                          (word / 4 * 32 + lane) * 4 + word % 4, code % pairs * bits + high * 16});
      }
  return places;
}

Result<Tensor> pack_codes(const WeightOnly& form) {
  const PackedWeights& weights = form.weights;
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::u32, {form.slices(), form.panels(), weights.bits() / 4, 32, 4}));
  std::memset(packed.mutable_data(), 0, packed.bytes());
  auto* to = packed.mutable_as<uint32_t>();
  const std::vector<Place> places = places_of(weights.bits());
  for (int64_t slice = 0; slice < form.slices(); ++slice)
    for (int64_t panel = 0; panel < form.panels(); ++panel, to += weights.bits() * 32)
      for (const Place& place : places) {
        const int64_t n = slice * kColumns + place.n, k = panel * kPanel + place.k;
        if (n < weights.n() && k < weights.k())
          to[place.word] |= static_cast<uint32_t>(weights.code(k, n)) << place.shift;
      }
  return packed;
}

// Scales or zeros, [slice][block][lane / 4][2].
template <class Of>
Result<Tensor> pack_pairs(const WeightOnly& form, const Of& of) {
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(form.scale_type(), {form.slices(), form.blocks(), 8, 2}));
  std::vector<double> values;
  values.reserve(static_cast<size_t>(packed.volume()));
  for (int64_t slice = 0; slice < form.slices(); ++slice)
    for (int64_t block = 0; block < form.blocks(); ++block)
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t n = slice * kColumns + i / 2 + i % 2 * 8;
        values.push_back(n < form.weights.n() ? of(block * form.weights.block(), n) : 0);
      }
  from_doubles(values, packed);
  return packed;
}

// ---- the choice

struct Blocks {
  int64_t warps = 8, groups = 1;  // of a slice of columns, and such slices
};

int64_t most_rows(const WeightOnly& form) { return form.is_scalar ? 8 : 64; }

// Of a tile for so many rows.
int64_t tile_rows(const WeightOnly& form, int64_t rows) {
  for (int64_t tile = form.is_scalar ? 1 : 8; tile < most_rows(form); tile *= 2)
    if (rows <= tile) return tile;
  return most_rows(form);
}

gemv::PanelStream stream_of(const WeightOnly& form, const Blocks& blocks) {
  return {.panel_bytes = kColumns * kPanel * form.weights.bits() / 8,
          .slices = form.slices(),
          .panels = form.panels(),
          .warps = blocks.warps,
          .groups = blocks.groups};
}

std::vector<Config> configs(const Problem& problem, const WeightOnly& form) {
  constexpr double kShareOfTensorCores = 0.2, kSeen = 0.1;  // of what the longer part hides
  constexpr int64_t kMostWarps = 64;                        // for each multiprocessor, in all
  const PackedWeights& weights = form.weights;
  const double products = static_cast<double>(weights.k()) * static_cast<double>(weights.n());
  const double bytes = products * (weights.bits() / 8.0 + 2.0 / static_cast<double>(weights.block()));
  const Target& target = problem.target;
  const double each = form.is_scalar ? target.products.f32 : target.products.matrix * kShareOfTensorCores;
  const auto rows = static_cast<double>(std::max<int64_t>(form.opt_m, form.is_scalar ? 1 : 8));
  const double computing = products * rows / (std::max(each, 1.0) * target.cores * target.clock_mhz);
  std::vector<Config> configs;
  constexpr Blocks kBlocks[] = {{4, 1}, {8, 1}, {2, 4}, {1, 8}, {16, 1}, {2, 2}},
                   kScalar[] = {{4}, {8}, {16}, {2}, {1}};
  for (const Blocks& blocks : form.is_scalar ? std::span<const Blocks>(kScalar) : kBlocks) {
    const int64_t warps = blocks.warps;
    if (warps > 1 && (warps > form.panels() || form.slices() * warps > kMostWarps * target.cores)) continue;
    if (warps * blocks.groups > 4 && tile_rows(form, form.opt_m) > 32) continue;  // shared memory
    const double memory = stream_of(form, blocks).predicted_us(bytes, target);
    configs.push_back({.text = blocks.groups > 1 ? fmt::format("warps={} slices={}", warps, blocks.groups)
                                                 : fmt::format("warps={}", warps),
                       .predicted_us = std::max(memory, computing) + kSeen * std::min(memory, computing),
                       .choice = blocks});
  }
  return best_first(std::move(configs));
}

// ---- the text

struct Tile {
  int64_t rows;
  Blocks blocks;
  int64_t threads() const { return 32 * blocks.warps * blocks.groups; }
  int64_t sums_bytes() const { return blocks.warps * blocks.groups * rows * kColumns * 4; }
};

// Shared memory for the rows that a tile reads; 0 = it reads them where they lie.
int64_t staged_bytes(const Problem& problem, const WeightOnly& form, const Tile& tile) {
  const Expr& m = form.product.m;
  const int64_t most = m.is_constant() ? std::min(form.opt_m, tile.rows) : tile.rows;
  if (form.is_scalar || form.width != 8) return 0;
  return stream_of(form, tile.blocks).staged_bytes(most, tile.sums_bytes(), problem.target);
}

// Of its own, for tensors of 4 bits are bytes to other kernels.
std::string_view code_type(DType dtype) { return dtype == DType::f4e2m1 ? "f4e2m1" : device_type(dtype); }

std::string tile_type(const WeightOnly& form, const Tile& tile, int64_t staged) {
  const std::string_view type = device_type(form.dtype), code = code_type(form.weights.dtype());
  const gemv::PanelStream stream = stream_of(form, tile.blocks);
  const int bits = form.weights.bits();
  const std::string columns =
      fmt::format("weight_only::PackedColumns<{}, {}, {}, {}, {}, {}>", device_type(form.scale_type()), bits,
                  form.has_zeros, code, form.weights.k(), form.weights.block());
  if (form.is_scalar)
    return fmt::format("weight_only::ScalarTile<{}, {}, {}, {}, {}, {}, {}, {}, {}>", columns, type, bits,
                       tile.blocks.warps, tile.rows, stream.ahead(), stream.own(), form.width, code);
  const std::string reader = staged > 0 ? fmt::format("SharedRows<{}, {}, {}>", type, tile.rows, tile.threads())
                                        : fmt::format("GlobalRows<{}, {}>", type, form.width);
  return fmt::format("gemv::StreamTile<{}, {}, {}, {}, {}, {}, {}, gemv::{}>", columns, type, tile.blocks.warps,
                     tile.blocks.groups, tile.rows / 8, stream.ahead(), stream.own(), reader);
}

SourceLaunch launch_of(const Problem& problem, const WeightOnly& form, const Tile& tile, const Expr& is_wanted,
                       Emission& emission) {
  const PackedWeights& weights = form.weights;
  const gemm::Product& p = form.product;
  Source source("gemm_weight_only/gemm_weight_only.cuh");
  source.input(0, problem.inputs[0], "A");
  source.input(1, packed_operand(emission.packed[0].content), "B");
  source.input(2, packed_operand(emission.packed[1].content), "S");
  if (form.has_zeros) source.input(3, packed_operand(emission.packed[2].content), "Z");
  gemm::Ending ending{p.problem, form.dtype, p.problem.outputs[0].rank() - 1, p.m, p.n, volume(p.batch), {}};
  ending.column_dims = p.column_dims();
  ending.first_operand = form.has_zeros ? 4 : 3;
  const gemm::Sink sink = gemm::declare_sink(source, ending, 1, emission);
  const int64_t staged = staged_bytes(problem, form, tile);
  const gemv::PanelStream stream = stream_of(form, tile.blocks);
  const std::string call = fmt::format(
      "using Tile = {0};\n"
      "  const long m = {1}, n = {2}, k = {3};\n"
      "  const gemm::Block block = gemm::block_of<Tile>(m, n, k, 1);\n"
      "  const long batch = block.batch;\n"
      "  Tile tile;\n"
      "  tile.run({{B_.data, S_.data, {4}}}, {{A_.data{5}, {6}, {7}, m, {3}}}, block, n, {8});\n"
      "  gemv::finish<{9}, {10}>(tile, {11}, block, m, n, reinterpret_cast<float*>(dynamic_shared() + {12}));",
      tile_type(form, tile, staged), source.number(p.m), weights.n(), weights.k(),
      form.has_zeros ? "Z_.data" : "nullptr", gemm::batch_offset(source, p, p.a), source.number(form.row),
      source.number(form.element), stream.cached(problem.target), std::min<int64_t>(sink.vector, kColumns),
      tile.blocks.warps, sink.text, staged);
  const Expr blocks = ceildiv(p.m, tile.rows) * stream.blocks() * volume(p.batch) * is_wanted;
  return source.finish(call, {blocks, 1, 1}, static_cast<uint32_t>(tile.threads()),
                       static_cast<uint32_t>(staged + tile.sums_bytes()));
}

// Two launches where the rows are open, of which one has no blocks: few rows, as they are measured, and any.
Result<Emission> emit(const Problem& problem, const WeightOnly& form, const Config& config) {
  Emission emission;
  emission.with_program = false;
  emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}, {StepInput::packed, 1}};
  LATHE_ASSIGN(emission.packed.emplace_back(), pack_codes(form));
  LATHE_ASSIGN(emission.packed.emplace_back(),
               pack_pairs(form, [&](int64_t k, int64_t n) { return static_cast<double>(form.weights.scale(k, n)); }));
  if (form.has_zeros) {
    emission.inputs.push_back({StepInput::packed, 2});
    LATHE_ASSIGN(emission.packed.emplace_back(), pack_pairs(form, [&](int64_t k, int64_t n) {
                   return static_cast<double>(form.weights.zero(k, n)) + form.offset(n);
                 }));
  }
  add_operand_inputs(problem, emission);
  const Tile measured{tile_rows(form, form.opt_m), config.as<Blocks>()}, any{most_rows(form), {.warps = 4}};
  const Expr& m = form.product.m;
  if (m.is_constant() || measured.rows == any.rows) {
    emission.launches.push_back(launch_of(problem, form, measured, 1, emission));
    return emission;
  }
  const Expr are_more = min(max(m - measured.rows, 0), 1);
  emission.launches.push_back(launch_of(problem, form, measured, Expr(1) - are_more, emission));
  emission.launches.push_back(launch_of(problem, form, any, are_more, emission));
  return emission;
}

}  // namespace

Matched match_gemm_weight_only(const Problem& problem) {
  if (!problem.is(OpKind::matmul)) return refuse("not a matrix product");
  const Features supported{
      .reassociated_result = true, .pairs = true, .reassociated_inputs = 1, .packed_weights = true};
  if (auto reason = unsupported_feature(problem, supported)) return refuse(*std::move(reason));
  const DType dtype = problem.inputs[0].dtype;
  if (!is_short_float(dtype)) return refuse(fmt::format("elements of type {}", name_of(dtype)));
  WeightOnly form{{}, PackedWeights(problem.inputs[1], problem.attrs<MatmulAttrs>().transpose_b), dtype};
  if (auto reason = gemm::describe(problem, form.product)) return refuse(*std::move(reason));
  const gemm::Matrix& a = form.product.a;
  if (a.has_several_strides()) return refuse("collapsed rows of the first operand");
  const bool is_along_k = a.major == gemm::Major::k;
  form.width = is_along_k ? a.width : 0;
  form.row = is_along_k ? a.pitch : Expr(1), form.element = is_along_k ? Expr(1) : a.pitch;
  form.opt_m = form.product.m.evaluate(problem.symbols).value_or(1);
  form.has_zeros = form.weights.has_other_zeros();
  form.is_scalar = !is_matrix_half(problem.target, dtype);
  return match_form(problem, std::move(form), configs, emit);
}

}  // namespace lathe::cuda
