// SPDX-License-Identifier: Apache-2.0
// Predicted times of CPU kernels are times: they rank kernels without a measurement, and lie near measured ones.
#include <gtest/gtest.h>

#include "device/family.h"
#include "kernels/cpu/target.h"
#include "lowering/engine_fixture.h"
#include "tuning/backend.h"

namespace lathe {
namespace {

// An op that computes for far longer than it moves memory, and the tactics that take it, the fastest first.
struct Typical {
  const char* text;
  std::vector<std::string> tactics;
};

const Typical kTypical[] = {
    {R"(input %x: f32[1, 64, 56, 56]
        %w = constant{value=f32[64, 64, 3, 3]{~1}}()
        %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1], groups=1}(%x, %w))",
     {"conv", "conv_elements"}},
    {R"(input %x: f32[1, 64, 112, 112]
        %w = constant{value=f32[64, 1, 3, 3]{~1}}()
        %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1], groups=64}(%x, %w))",
     {"depthwise", "conv_elements", "conv"}},
    {R"(input %x: f32[1, 64, 28, 28]
        %w = constant{value=f32[64, 32, 4, 4]{~1}}()
        %y = deconvolution{stride=[2, 2], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1], groups=1}(%x, %w))",
     {"deconv", "conv_elements"}},
    {"input %x: i8[256, 256] %w = constant{value=i8[256, 256]{~1}}() %y = matmul(%x, %w)", {"contraction"}},
    {"input %x: f64[256, 256] input %w: f64[256, 256] %y = matmul(%x, %w)", {"contraction"}},
    {R"(input %x: f32[8, 128, 64] input %w: f32[8, 128, 64]
        %y = einsum{equation="bij,bkj->bik"}(%x, %w))",
     {"contraction"}},
    {R"(input %x: f64[1, 64, 56, 56]
        %y = pooling{op=average, window=[3, 3], stride=[2, 2], pads_begin=[1, 1], pads_end=[1, 1]}(%x))",
     {"pool_elements"}},
    {"input %x: f32[12, 256, 256] %y = softmax{axis=2}(%x)", {"softmax"}},
};

// The best candidate of each tactic.
std::map<std::string, Choice::Finalist> candidates_of(const char* text, const BackendBuild& backend, double budget) {
  BuildOptions options;
  use_backend(backend, options);
  options.tuner.budget_seconds = budget;
  options.tuner.most_finalists = 1000;
  Result<ir::Graph> graph = ir::parse_graph(fmt::format("graph \"g\" {{ {}\n output %y }}", text));
  EXPECT_TRUE(graph) << graph.error().to_string();
  const Result<std::unique_ptr<BuiltPlan>> built = build_plan(*std::move(graph), options);
  EXPECT_TRUE(built) << built.error().to_string();
  std::map<std::string, Choice::Finalist> best;
  for (const RegionReport& region : (*built)->report.regions)
    for (const Choice::Finalist& each : region.candidates)
      best.emplace(each.tactic.substr(0, each.tactic.find(':')), each);
  return best;
}

TEST(CpuPredictions, RankKernels) {
  for (const char* target : {"cpu-x86_64-baseline", "cpu-x86_64-avx2", "cpu-x86_64-avx512", "cpu-arm64-baseline"})
    for (const Typical& typical : kTypical) {
      auto candidates = candidates_of(typical.text, *prepare_build(target, {2, {}, {}}), 0);
      double last = 0;
      for (const std::string& tactic : typical.tactics) {
        ASSERT_TRUE(candidates.contains(tactic)) << target << ": " << typical.text;
        EXPECT_GT(candidates[tactic].predicted_us, last) << target << ": " << tactic << " of " << typical.text;
        last = candidates[tactic].predicted_us;
      }
    }
}

// What sanitizers and missing optimisation cost, no cost model knows.
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// On a machine that others use, everything takes longer: times are compared with those of the other kernels.
TEST(CpuPredictions, LieNearMeasuredTimes) {
  constexpr double kFactor = 8;
  constexpr int kAttempts = 3;
  const Result<BackendBuild> backend = prepare_build("cpu", {2, {}, {}});
  ASSERT_TRUE(backend);
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    std::multimap<double, std::string> ratios;
    for (const Typical& typical : kTypical)
      for (const auto& [tactic, best] : candidates_of(typical.text, *backend, 60))
        if (tactic != "copy" && best.microseconds > 0)
          ratios.emplace(best.microseconds / best.predicted_us,
                         fmt::format("{} takes {:.1f} us, predicted {:.1f}, for {}", tactic, best.microseconds,
                                     best.predicted_us, typical.text));
    ASSERT_GT(ratios.size(), std::size(kTypical));
    const double usual = std::next(ratios.begin(), static_cast<ptrdiff_t>(ratios.size() / 2))->first;
    const auto &least = *ratios.begin(), &most = *ratios.rbegin();
    if (usual < kFactor && 1 < usual * kFactor && most.first < usual * kFactor && usual < least.first * kFactor) return;
    EXPECT_LT(attempt, kAttempts) << "usual: " << usual << "\n" << least.second << "\n" << most.second;
  }
}
#endif

}  // namespace
}  // namespace lathe
