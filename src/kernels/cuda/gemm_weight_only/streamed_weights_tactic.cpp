// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm_weight_only/streamed_weights_tactic.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/divide.h"
#include "kernels/cuda/match.h"
#include "ops/rules.h"

namespace lathe::cuda::weight_only {
namespace {

constexpr int64_t kColumns = gemv::kStreamColumns, kPanel = gemv::kStreamPanel;

// Where a code of a panel is in B, and in the panel's words.
struct Place {
  int n, k, word, shift;
};

// In which of a lane's columns and elements of K the codes of its words are: see PackedColumns::operand_of().
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

// Of its own, for tensors of 4 bits are bytes to other kernels.
std::string_view code_type(DType dtype) { return dtype == DType::f4e2m1 ? "f4e2m1" : device_type(dtype); }

}  // namespace

PackedStream::PackedStream(std::vector<PackedWeights> matrices, DType dtype, const Target& target)
    : matrices_(std::move(matrices)),
      dtype_(dtype),
      is_scalar_(!is_matrix_half(target, dtype)),
      has_zeros_(std::ranges::any_of(matrices_, &PackedWeights::has_other_zeros)) {}

int64_t PackedStream::slices() const { return ceil_div(first().n(), kColumns); }
int64_t PackedStream::panels() const { return ceil_div(first().k(), kPanel); }
double PackedStream::element_bytes() const { return first().bits() / 8.0 + 2.0 / static_cast<double>(first().block()); }
int64_t PackedStream::scale_blocks() const { return ceil_div(first().k(), first().block()); }

// offset_of() in gemm_weight_only.cuh.
int PackedStream::offset(int64_t n) const {
  const DType dtype = scale_type();
  if (dtype == DType::f16) return first().bits() == 4 && n % kColumns >= kColumns / 2 ? 64 : 1024;
  return dtype == DType::bf16 && first().bits() == 4 ? 128 : 0;
}

// ---- packing

Result<Tensor> PackedStream::pack_codes() const {
  const int bits = first().bits();
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::u32, {matrices() * slices(), panels(), bits / 4, 32, 4}));
  std::memset(packed.mutable_data(), 0, packed.bytes());
  auto* to = packed.mutable_as<uint32_t>();
  const std::vector<Place> places = places_of(bits);
  for (const PackedWeights& matrix : matrices_)
    for (int64_t slice = 0; slice < slices(); ++slice)
      for (int64_t panel = 0; panel < panels(); ++panel, to += bits * 32)
        for (const Place& place : places) {
          const int64_t n = slice * kColumns + place.n, k = panel * kPanel + place.k;
          if (n < matrix.n() && k < matrix.k())
            to[place.word] |= static_cast<uint32_t>(matrix.code(k, n)) << place.shift;
        }
  return packed;
}

// Scales or zeros, [matrix][slice][block][lane / 4][2].
template <class Of>
Result<Tensor> PackedStream::pack_pairs(const Of& of) const {
  LATHE_ASSIGN(Tensor packed, Tensor::allocate(scale_type(), {matrices() * slices(), scale_blocks(), 8, 2}));
  std::vector<double> values;
  values.reserve(static_cast<size_t>(packed.volume()));
  for (const PackedWeights& matrix : matrices_)
    for (int64_t slice = 0; slice < slices(); ++slice)
      for (int64_t block = 0; block < scale_blocks(); ++block)
        for (int64_t i = 0; i < 16; ++i) {
          const int64_t n = slice * kColumns + i / 2 + i % 2 * 8;
          values.push_back(n < matrix.n() ? of(matrix, block * matrix.block(), n) : 0);
        }
  from_doubles(values, packed);
  return packed;
}

Result<> PackedStream::pack_into(Emission& emission) const {
  const auto add = [&](Result<Tensor> packed) -> Result<> {
    emission.inputs.push_back({StepInput::packed, static_cast<uint32_t>(emission.packed.size())});
    LATHE_ASSIGN(emission.packed.emplace_back(), std::move(packed));
    return {};
  };
  LATHE_TRY(add(pack_codes()));
  LATHE_TRY(add(pack_pairs(
      [](const PackedWeights& matrix, int64_t k, int64_t n) { return static_cast<double>(matrix.scale(k, n)); })));
  if (!has_zeros_) return {};
  return add(pack_pairs([&](const PackedWeights& matrix, int64_t k, int64_t n) {
    return static_cast<double>(matrix.zero(k, n)) + offset(n);
  }));
}

// ---- the choice

bool PackedStream::has_one_row() const {
  return !is_scalar_ && dtype_ == DType::f16 && !is_weight_float(first().dtype());
}

int64_t PackedStream::tile_rows(int64_t rows) const {
  for (int64_t tile = is_scalar_ ? 1 : 8; tile < most_rows(); tile *= 2)
    if (rows <= tile) return tile;
  return most_rows();
}

gemv::PanelStream PackedStream::stream(const StreamBlocks& blocks) const {
  return {.panel_bytes = kColumns * kPanel * first().bits() / 8,
          .slices = slices(),
          .panels = panels(),
          .warps = blocks.warps,
          .groups = blocks.groups};
}

int64_t PackedStream::staged_bytes(const StreamTile& tile, int64_t rows, int width, const Target& target) const {
  return is_scalar_ || is_one_row(tile) || width != 8
             ? 0
             : stream(tile.blocks).staged_bytes(rows, tile.sums_bytes(), target);
}

int PackedStream::min_blocks(const StreamTile& tile, const Target& target) const {
  return is_one_row(tile) ? static_cast<int>(stream(tile.blocks).beside(target)) : 1;
}

std::vector<Config> PackedStream::configs(const Target& target, int64_t rows, int64_t used) const {
  return configs_of(tile_rows(rows), target, rows, used);
}

std::vector<Config> PackedStream::configs_of(int64_t tile, const Target& target, int64_t rows, int64_t used) const {
  // Of tall tiles, which leave blocks no shared memory for another: measured, 64 to 512 rows of one matrix, and 128 of
  // each of 8.
  constexpr double kShareOfTensorCores = 0.2, kOfTallTiles = 0.17;
  constexpr double kSeen = 0.1;         // of what the longer part hides
  constexpr int64_t kMostWarps = 64;    // for each multiprocessor, in all; more of one row, whose blocks are short
  constexpr double kPanelClocks = 150;  // of up to 8 rows: four products, each of which waits for the one before
  const bool is_one = tile == 1 && !is_scalar_;
  const double products = static_cast<double>(first().k()) * static_cast<double>(first().n() * used);
  const double bytes = products * element_bytes();
  const bool is_tall = tile > 32;
  const double each =
      is_scalar_ ? target.products.f32 : target.products.matrix * (is_tall ? kOfTallTiles : kShareOfTensorCores);
  const auto at_once = static_cast<double>(std::max<int64_t>(rows, is_scalar_ ? 1 : 8));
  const double computing = products * at_once / (std::max(each, 1.0) * target.cores * target.clock_mhz);
  std::vector<Config> configs;
  constexpr StreamBlocks kBlocks[] = {{4, 1}, {8, 1}, {2, 4}, {1, 8}, {16, 1}, {2, 2}, {1, 4}},
                         kScalar[] = {{4}, {8}, {16}, {2}, {1}};
  for (const StreamBlocks& blocks : is_scalar_ ? std::span<const StreamBlocks>(kScalar) : kBlocks) {
    const int64_t warps = blocks.warps;
    gemv::PanelStream launch = stream(blocks);
    launch.slices *= used;
    if (!is_scalar_ && tile <= 8) launch.panel_clocks = kPanelClocks;
    if (warps > 1 && (warps > panels() || (!is_one && launch.slices * warps > kMostWarps * target.cores))) continue;
    if (warps * blocks.groups > 4 && is_tall) continue;  // shared memory
    const double memory = launch.predicted_us(bytes, target);
    configs.push_back({.text = blocks.groups > 1 ? fmt::format("warps={} slices={}", warps, blocks.groups)
                                                 : fmt::format("warps={}", warps),
                       .predicted_us = std::max(memory, computing) + kSeen * std::min(memory, computing),
                       .choice = blocks});
  }
  return best_first(std::move(configs));
}

std::vector<Config> PackedStream::one_row_configs(const Target& target, int64_t used) const {
  constexpr size_t kMostConfigs = 3;
  constexpr double kShare = 0.97;  // of the time of tiles of 8 rows
  std::vector<Config> all;
  if (!has_one_row()) return all;
  for (Config& each : configs_of(1, target, 1, used)) {
    each.text = "one row " + each.text, each.predicted_us *= kShare;
    all.push_back(std::move(each));
  }
  return best_first(std::move(all), kMostConfigs);
}

// ---- the text

void PackedStream::declare(Source& source, const Emission& emission) const {
  constexpr std::string_view kNames[] = {"B", "S", "Z"};
  for (size_t i = 0; i < inputs(); ++i) source.input(1 + i, packed_operand(emission.packed[i]), kNames[i]);
}

std::string PackedStream::argument(std::string_view matrix) const {
  const int64_t codes = slices() * panels() * first().bits() * 32, pairs = slices() * scale_blocks() * 16;
  const auto at = [&](int64_t size) { return matrix.empty() ? "" : fmt::format(" + {} * {}L", matrix, size); };
  return fmt::format("{{B_.data{}, S_.data{}, {}}}", at(codes), at(pairs),
                     has_zeros_ ? "Z_.data" + at(pairs) : "nullptr");
}

std::string PackedStream::columns_type() const {
  return fmt::format("weight_only::PackedColumns<{}, {}, {}, {}, {}, {}>", device_type(scale_type()), first().bits(),
                     has_zeros_, code_type(first().dtype()), first().k(), first().block());
}

std::string_view PackedStream::header(const StreamTile& tile) const {
  return is_one_row(tile) ? "gemm_weight_only/one_row.cuh" : "gemm_weight_only/gemm_weight_only.cuh";
}

std::string PackedStream::reader(const StreamTile& tile, std::string_view rows, int width, int64_t staged) const {
  return staged > 0 ? fmt::format("SharedRows<{}, {}, {}>", rows, tile.rows, tile.threads())
                    : fmt::format("GlobalRows<{}, {}>", rows, width);
}

std::string PackedStream::tile_type(const StreamTile& tile, std::string_view reader, int width) const {
  const std::string_view type = device_type(dtype_), code = code_type(first().dtype());
  const gemv::PanelStream stream = this->stream(tile.blocks);
  const int bits = first().bits();
  const std::string columns = columns_type();
  if (is_scalar_)
    return fmt::format("weight_only::ScalarTile<{}, {}, {}, {}, {}, {}, {}, {}, {}>", columns, type, bits,
                       tile.blocks.warps, tile.rows, stream.ahead(), stream.own(), width, code);
  if (is_one_row(tile))
    return fmt::format("weight_only::OneRowTile<{}, {}, {}, {}, {}, {}, gemv::{}>", bits, has_zeros_, first().k(),
                       first().block(), tile.blocks.warps, tile.blocks.groups, reader);
  return fmt::format("gemv::StreamTile<{}, {}, {}, {}, {}, {}, {}, gemv::{}>", columns, type, tile.blocks.warps,
                     tile.blocks.groups, tile.rows / 8, stream.ahead(), stream.own(), reader);
}

}  // namespace lathe::cuda::weight_only
