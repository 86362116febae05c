// SPDX-License-Identifier: Apache-2.0
// Rows of products by narrow weights as integers: at every ISA level, with the CPU's instruction for sums of four
// products and without, and what becomes of rows that are none. The rest is in weight_only.graph.
#include <cstring>
#include <limits>

#include "base/encoding.h"
#include "kernels/cpu/gemm_weight_only/row_digits.h"
#include "kernels/cpu/isa_levels.h"
#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/reference.h"

namespace lathe::cpu {
namespace {

using namespace testing;
using gemm::DigitGroup;
using gemm::DigitKernel;
using gemm::PackedPanels;

constexpr int kColumns = PackedPanels::kColumns;

// One panel of random weights, and what they are.
struct Weights {
  explicit Weights(const PackedPanels& panels) : panels(panels), bytes(static_cast<size_t>(panels.panel_bytes())) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(pick(0, 255));
    for (int64_t b = 0; b < panels.blocks(); ++b)
      for (int c = 0; c < kColumns; ++c) set_scale(b, c, 0.01f + uniform());
  }
  static float uniform() { return static_cast<float>(pick(1, 1000)) / 1000; }
  std::byte* block(int64_t b) { return bytes.data() + b * panels.block_bytes(); }
  void set_scale(int64_t b, int c, float scale) {
    const Half half(scale);
    if (panels.half_scales)
      std::memcpy(block(b) + c * 2, &half, 2);
    else
      std::memcpy(block(b) + c * 4, &scale, 4);
  }
  double scale(int64_t b, int c) {
    Half half;
    float scale = 0;
    std::memcpy(&half, block(b) + c * 2, 2);
    if (!panels.half_scales) std::memcpy(&scale, block(b) + c * 4, 4);
    return panels.half_scales ? static_cast<float>(half) : scale;
  }
  double weight(int64_t k, int c) {
    const int64_t b = k / panels.block, at = k % panels.block;
    const int half = 1 << (panels.bits - 1);
    const int zero = panels.has_zeros ? static_cast<int>(block(b)[panels.scale_bytes() + c]) : half;
    uint32_t word = 0;
    std::memcpy(&word,
                block(b) + panels.scale_bytes() + panels.zero_bytes() + (at / panels.per_word() * kColumns + c) * 4,
                sizeof(word));
    const auto code = static_cast<int>(word >> at % panels.per_word() * panels.bits & ((1u << panels.bits) - 1));
    if (panels.codes == gemm::Codes::e2m1) return decode(DType::f4e2m1, static_cast<uint8_t>(code)) * scale(b, c);
    return ((panels.bits == 8 ? code ^ 128 : code) - zero) * scale(b, c);
  }
  PackedPanels panels;
  std::vector<std::byte> bytes;
};

void check_digits(const DigitKernel& kernel, Weights& weights, bool has_outliers) {
  const PackedPanels& panels = weights.panels;
  constexpr int kRows = 2;
  std::vector<float> a(static_cast<size_t>(kRows * panels.k));
  for (float& x : a) x = (Weights::uniform() - 0.5f) * (has_outliers && pick(0, 50) == 0 ? 1e4f : 1.0f);
  const double most = has_outliers ? 0.5e4 : 0.5;
  const int64_t per_block = ceil_div<int64_t>(panels.block, DigitGroup::kDepth), stride = per_block * panels.blocks();
  std::vector<DigitGroup> groups(static_cast<size_t>(kRows * stride));
  for (int r = 0; r < kRows; ++r)
    ASSERT_TRUE(kernel.split(panels, a.data() + r * panels.k, groups.data() + r * stride));
  alignas(64) float sums[kRows * kColumns];
  kernel.multiply(panels, weights.bytes.data(), groups.data(), stride, kRows, sums);
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) {
      double want = 0, magnitudes = 0, weight_sum = 0;
      for (int64_t k = 0; k < panels.k; ++k) {
        const double product = a[static_cast<size_t>(r * panels.k + k)] * weights.weight(k, c);
        want += product;
        magnitudes += std::fabs(product);
        weight_sum += std::fabs(weights.weight(k, c));
      }
      ASSERT_NEAR(sums[r * kColumns + c], want, 1e-6 * magnitudes + 0x1p-30 * most * weight_sum) << r << " " << c;
    }
}

struct LevelKernels {
  std::string name;
  const DigitKernel* (*kernel)(const PackedPanels& panels, bool multiplies_bytes);
  bool multiplies_bytes;
};

std::vector<LevelKernels> all_levels() {
  std::vector<LevelKernels> found;
  for (const auto& level : LATHE_ISA_LEVELS(digit_kernel))
    found.push_back({std::string(level.level), level.function, false});
  if (multiplies_bytes()) found.push_back({found.back().name + " with VNNI", found.back().kernel, true});
  return found;
}

TEST(WeightOnlyDigits, AreAsExactAsFloats) {
  for (const auto& [name, kernel_of, multiplies_bytes] : all_levels())
    for (const auto& [codes, bits] :
         {std::pair(gemm::Codes::integers, 4), {gemm::Codes::integers, 8}, {gemm::Codes::e2m1, 4}})
      for (const bool has_zeros : {false, true})
        for (const bool has_halves : {false, true})
          for (const auto& [k, block] : std::vector<std::pair<int64_t, int64_t>>{
                   {1, 1}, {37, 37}, {100, 16}, {96, 48}, {200, 128}, {300, 300}}) {
            const bool are_floats = codes == gemm::Codes::e2m1;
            if (are_floats && has_zeros) continue;
            PackedPanels panels{.k = k,
                                .n = kColumns,
                                .block = block,
                                .bits = bits,
                                .has_zeros = has_zeros,
                                .half_scales = has_halves,
                                .codes = codes};
            const DigitKernel* kernel = kernel_of(panels, multiplies_bytes);
            if (!kernel) continue;
            SCOPED_TRACE(fmt::format("{}: {} bits{}, {}, {}, K {} in blocks of {}", name, bits,
                                     are_floats ? " of floats" : "", has_zeros, has_halves, k, block));
            Weights weights(panels);
            for (const bool has_outliers : {false, true}) check_digits(*kernel, weights, has_outliers);
          }
}

TEST(WeightOnlyDigits, HoldTheLeastAndTheLargest) {
  const PackedPanels panels{.k = 32, .n = kColumns, .block = 32};
  for (const auto& [name, kernel_of, multiplies_bytes] : all_levels()) {
    const DigitKernel* kernel = kernel_of(panels, multiplies_bytes);
    if (!kernel) continue;
    for (const float most : {std::numeric_limits<float>::max(), 1.0f, 0x1p-97f, 0.0f})
      for (const float sign : {1.0f, -1.0f}) {
        std::vector<float> row(32);
        row[5] = sign * most;
        row[6] = most / 64;
        DigitGroup group;
        ASSERT_TRUE(kernel->split(panels, row.data(), &group));
        for (const int i : {5, 6}) {
          int64_t number = 0;
          for (int place = DigitGroup::kPlaces - 1; place >= 0; --place) {
            int8_t digits[4];
            std::memcpy(digits, &group.digits[i % 2 * 4 + place], sizeof(digits));
            number = number * 256 + digits[i / 2];
          }
          EXPECT_EQ(static_cast<float>(static_cast<double>(number) * group.unit), row[static_cast<size_t>(i)])
              << name << " " << most;
        }
      }
    for (const float odd : {0x1p-98f, std::numeric_limits<float>::denorm_min(), HUGE_VALF, NAN}) {
      const std::vector<float> row(32, odd);
      DigitGroup group;
      EXPECT_FALSE(kernel->split(panels, row.data(), &group)) << name << " " << odd;
    }
  }
}

// Those of infinities and NaNs, whose products are floats.
TEST(WeightOnlyDigits, AreNotOfRowsThatHaveNone) {
  const PackedPanels panels{.k = 100, .n = 70, .block = 32};
  const gemm::WeightOnlyParams params{.k = panels.k, .n = panels.n, .block = panels.block, .bits = 4};
  const auto kernel = make_kernel("gemm_weight_only", params);
  ASSERT_TRUE(kernel);
  TestTensor packed({panels.bytes()}, {}, 0, DType::u8), out({1, panels.n});
  Weights weights({.k = panels.k, .n = kColumns, .block = panels.block});
  for (int64_t panel = 0; panel < panels.panels(); ++panel)
    std::memcpy(packed.arg.as<std::byte>() + panel * panels.panel_bytes(), weights.bytes.data(), weights.bytes.size());
  for (const float odd : {HUGE_VALF, -HUGE_VALF, NAN}) {
    TestTensor a({1, panels.k});
    for (int64_t k = 0; k < panels.k; ++k) a.arg.as<float>()[k] = Weights::uniform();
    a.arg.as<float>()[99] = odd;
    run_kernel(*kernel, {a.arg, packed.arg}, {out.arg}, 2);
    for (int64_t c = 0; c < panels.n; ++c) {
      const float want = odd * static_cast<float>(weights.weight(99, static_cast<int>(c % kColumns)));
      const float got = out.arg.as<float>()[c];
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << got << " " << want;
    }
  }
}

}  // namespace
}  // namespace lathe::cpu
