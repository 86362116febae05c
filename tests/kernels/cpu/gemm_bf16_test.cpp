// SPDX-License-Identifier: Apache-2.0
// What products of bf16 are made of, at every ISA level, with the CPU's instructions for bf16 and without.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/matrix_tiles.h"
#include "kernels/cpu/gemm/pairs.h"
#include "kernels/cpu/gemm/panels_packing_tactic.h"
#include "kernels/cpu/isa_levels.h"
#include "kernels/cpu/reference.h"

namespace lathe::cpu {
namespace {

using namespace testing;

std::array<uint16_t, 2> halves_of(float pair) { return std::bit_cast<std::array<uint16_t, 2>>(pair); }

// The bits of the nearest bf16, half to even.
void expect_rounded(uint16_t got, float from) {
  const BFloat16 want(from);
  if (!std::isnan(from)) {
    EXPECT_EQ(got, want.bits) << from;
    return;
  }
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(uint32_t{got} << 16)));
}

// Of all magnitudes, with ties, infinities and NaNs. Numbers too small for a full exponent are 0 to the instructions.
std::vector<float> hard_numbers(int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& x : numbers) {
    do x = std::bit_cast<float>(static_cast<uint32_t>(generator()()) & (pick(0, 3) ? 0xffffffffu : 0xffff8000u));
    while (std::fabs(x) < std::numeric_limits<float>::min());
    if (pick(0, 20) == 0) x = one_of<float>({0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, NAN, 3.4e38f});
  }
  return numbers;
}

TEST(Pairs, AreRounded) {
  for (const bool fast : {false, true}) {
    if (fast && !multiplies_bf16()) continue;
    for (const auto& level : LATHE_ISA_LEVELS(pair_neighbours)) {
      if (fast && level.level != "avx512") continue;
      for (int64_t count = 0; count < 80; ++count) {
        SCOPED_TRACE(fmt::format("{} of {} {}", count, level.level, fast));
        const std::vector<float> row = hard_numbers(count);
        std::vector<float> pairs(static_cast<size_t>(gemm::pairs_of(count)) + 1, 7);
        level.function(row.data(), count, pairs.data(), fast);
        for (int64_t i = 0; i < count; ++i)
          expect_rounded(halves_of(pairs[static_cast<size_t>(i / 2)])[i % 2], row[static_cast<size_t>(i)]);
        if (count % 2 == 1) {
          EXPECT_EQ(halves_of(pairs[static_cast<size_t>(count / 2)])[1], 0);
        }
        EXPECT_EQ(pairs.back(), 7);
        std::vector<float> own = row;  // in place
        level.function(own.data(), count, own.data(), fast);
        pairs.pop_back();
        own.resize(pairs.size());
        EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(own)), std::as_bytes(std::span(pairs))));
      }
    }
    for (const auto& level : LATHE_ISA_LEVELS(pair_rows)) {
      if (fast && level.level != "avx512") continue;
      for (int count = 0; count < 40; ++count) {
        const std::vector<float> first = hard_numbers(count), second = hard_numbers(count);
        std::vector<float> pairs(static_cast<size_t>(count) + 1, 7);
        for (const bool has_second : {true, false}) {
          level.function(first.data(), has_second ? second.data() : nullptr, count, pairs.data(), fast);
          for (size_t i = 0; i < first.size(); ++i) {
            expect_rounded(halves_of(pairs[i])[0], first[i]);
            expect_rounded(halves_of(pairs[i])[1], has_second ? second[i] : 0);
          }
          EXPECT_EQ(pairs.back(), 7);
        }
      }
    }
  }
}

// As data, the packing says what packing while running does.
TEST(Pairs, ArePackedByData) {
  for (int i = 0; i < 100; ++i) {
    const int64_t k = pick(1, 150), n = pick(1, 150);
    const bool transposed = pick(0, 1);
    const gemm::Panels panels{gemm::pairs_of(k), n, static_cast<int>(one_of<int64_t>({16, 32, 48, 64}))};
    const int64_t k_stride = transposed ? 1 : n, n_stride = transposed ? k : 1;
    std::vector<float> source(static_cast<size_t>(k * n));
    for (float& x : source) x = static_cast<float>(pick(-1000, 1000));
    Tensor rounded = *Tensor::allocate(DType::bf16, {k * n});
    for (int64_t e = 0; e < k * n; ++e) rounded.mutable_as<BFloat16>()[e] = BFloat16(source[static_cast<size_t>(e)]);
    const Result<Tensor> want = gemm::pairs_packing(panels, k, k_stride, n_stride).apply(rounded);
    ASSERT_TRUE(want) << want.error().to_string();
    std::vector<float> packed(static_cast<size_t>(panels.floats()), 7);
    gemm::pack_pairs(panels, k, source.data(), k_stride, n_stride, 0, panels.count(), packed.data());
    ASSERT_EQ(want->bytes(), packed.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(want->data(), packed.data(), want->bytes()), 0) << k << " x " << n << " " << transposed;
  }
}

void check_tiles(const gemm::TileTable& table, std::string_view name) {
  for (int vectors = 1; vectors <= table.vectors; ++vectors)
    for (int rows = 1; rows <= table.max_rows[vectors - 1]; ++rows) {
      SCOPED_TRACE(fmt::format("{}: {} rows of {} vectors", name, rows, vectors));
      const int64_t k = pick(1, 60), columns = int64_t{vectors} * table.lanes, depth = gemm::pairs_of(k);
      const gemm::Panels panels{depth, columns, static_cast<int>(round_up<int64_t>(columns, gemm::kPanelQuantum))};
      TestTensor a({rows, k}), b({k, columns});
      a.fill_uniform(generator());
      b.fill_uniform(generator());
      std::vector<float> packed(static_cast<size_t>(panels.floats())), pairs(static_cast<size_t>(rows * depth));
      std::vector<float> sums(static_cast<size_t>(rows * columns));
      gemm::pack_pairs(panels, k, b.arg.as<float>(), columns, 1, 0, 1, packed.data());
      const float* a_rows[kMaxTileRows];
      for (int r = 0; r < rows; ++r) {
        a_rows[r] = pairs.data() + r * depth;
        LATHE_ISA_SELECT(pair_neighbours)(a.arg.as<float>() + r * k, k, pairs.data() + r * depth, false);
      }
      const gemm::Tap tap{0, 0, static_cast<int32_t>(depth), 0};
      gemm::Tile tile{};
      tile.a_rows = a_rows;
      tile.taps = &tap;
      tile.tap_count = 1;
      tile.b = packed.data();
      tile.b_stride = panels.stride(0);
      tile.columns = static_cast<int>(columns);
      tile.partial = sums.data();
      tile.partial_stride = columns;
      tile.store_partial = true;
      tile.rows = rows;
      gemm::MatrixSetup matrices(table.leave);
      tile.b_rows = depth;
      tile.configured = matrices.code();
      table.functions[vectors - 1][rows - 1](tile);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          double sum = 0;
          for (int64_t i = 0; i < k; ++i)
            sum += static_cast<double>(static_cast<float>(BFloat16(a.at({r, i})))) *
                   static_cast<float>(BFloat16(b.at({i, c})));
          ASSERT_NEAR(sums[static_cast<size_t>(r * columns + c)], sum, 1e-6 * std::sqrt(static_cast<double>(k)) + 1e-6);
        }
    }
}

TEST(Pairs, AreMultipliedByEveryTile) {
  for (const auto& level : LATHE_ISA_LEVELS(pair_tile_table)) check_tiles(level.function(false), level.level);
  const auto best = LATHE_ISA_LEVELS(pair_tile_table).back();
  if (multiplies_bf16()) check_tiles(best.function(true), fmt::format("{} with bf16", best.level));
  if (has_matrix_registers()) check_tiles(LATHE_ISA_SELECT(matrix_tiles)()->pairs, "matrix registers");
}

}  // namespace
}  // namespace lathe::cpu
