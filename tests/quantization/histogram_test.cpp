// SPDX-License-Identifier: Apache-2.0
// What histograms count, whatever order values come in, and the thresholds that are read from them.
#include "quantization/histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "quantization/thresholds.h"

namespace lathe {
namespace {

Tensor tensor_of(const std::vector<float>& values) {
  return Tensor::from<float>({static_cast<int64_t>(values.size())}, values);
}

std::vector<float> normal_values(size_t count, float deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

uint64_t counted(const Histogram& histogram) {
  return std::accumulate(histogram.counts().begin(), histogram.counts().end(), uint64_t{0});
}

TEST(Histogram, CountsEachMagnitudeOnceHoweverItGrows) {
  Histogram histogram;
  ASSERT_TRUE(histogram.add(tensor_of({0, -0.0f, 1, -0.5f})));
  EXPECT_EQ(histogram.largest(), 1);
  EXPECT_EQ(histogram.bin_width(), 1.0 / Histogram::kBins);
  ASSERT_TRUE(histogram.add(tensor_of({-5, 3, NAN, INFINITY})));
  EXPECT_EQ(histogram.largest(), 5);
  EXPECT_EQ(histogram.bin_width(), 8.0 / Histogram::kBins);
  EXPECT_EQ(histogram.zeros(), 2u);
  EXPECT_EQ(histogram.non_finite(), 2u);
  EXPECT_EQ(counted(histogram), 4u);
  for (const double magnitude : {0.5, 3.0, 5.0})
    EXPECT_EQ(histogram.counts()[static_cast<size_t>(magnitude / histogram.bin_width())], 1u) << magnitude;
}

TEST(Histogram, IsTheSameForAllFloats) {
  Histogram wide, narrow;
  ASSERT_TRUE(wide.add(Tensor::of<double>({3}, {0.25, -2, 0})));
  ASSERT_TRUE(narrow.add(tensor_of({0.25f, -2, 0})));
  EXPECT_EQ(wide.to_text(), narrow.to_text());
  EXPECT_FALSE(wide.add(Tensor::of<int64_t>({1}, {1})));
}

TEST(Histogram, ComesBackFromItsText) {
  for (const std::vector<float>& values : {normal_values(1000, 3, 1), std::vector<float>{0, 0}, {}}) {
    Histogram histogram;
    ASSERT_TRUE(histogram.add(tensor_of(values)));
    const Result<Histogram> read = Histogram::parse(histogram.to_text());
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(read->to_text(), histogram.to_text());
    EXPECT_EQ(entropy_threshold(*read), entropy_threshold(histogram));
  }
}

TEST(Histogram, RefusesTextThatIsNone) {
  for (const char* text : {"", "1", "x 0 0 0", "-0x1p0 0x1p0 0 0 1", "0x1p0 0x1p0 0 0", "0x0p0 0x0p0 0 0 1",
                           "0x1p0 0x1p0 0 0 -1", "0x1p0 0x1p0 0 0 1 y", "0x1p0 0x1p20 0 0 1", "nan 0x1p0 0 0 1"})
    EXPECT_FALSE(Histogram::parse(text)) << text;
  std::string text = "0x1p0 0x1p0 0 0";
  for (size_t i = 0; i <= Histogram::kBins; ++i) text += " 1";
  EXPECT_FALSE(Histogram::parse(text));
}

// The method as it was published, bin by bin: of each number of bins, the divergence of the clipped distribution from
// that of 128 levels.
double published_threshold(const Histogram& histogram) {
  std::vector<double> counts(histogram.counts().begin(), histogram.counts().end());
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  size_t best = counts.size();
  double least = std::numeric_limits<double>::infinity();
  for (size_t bins = 128; bins <= counts.size(); ++bins) {
    std::vector<double> p(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(bins)), q(bins);
    p.back() += std::accumulate(counts.begin() + static_cast<std::ptrdiff_t>(bins), counts.end(), 0.0);
    for (size_t level = 0; level < 128; ++level) {
      const size_t begin = level * bins / 128, end = (level + 1) * bins / 128;
      double sum = 0, used = 0;
      for (size_t i = begin; i < end; ++i) sum += counts[i], used += p[i] > 0;
      for (size_t i = begin; i < end; ++i) q[i] = p[i] > 0 ? sum / used : 0;
    }
    const double all_p = std::accumulate(p.begin(), p.end(), 0.0), all_q = std::accumulate(q.begin(), q.end(), 0.0);
    double divergence = 0;
    for (size_t i = 0; i < bins; ++i)
      if (p[i] > 0) divergence += p[i] / all_p * std::log(p[i] / all_p / (q[i] / all_q));
    if (divergence < least) least = divergence, best = bins;
  }
  return std::min((static_cast<double>(best) + 0.5) * histogram.bin_width(), histogram.largest());
}

TEST(Thresholds, EntropyIsThePublishedOne) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    Histogram histogram;
    ASSERT_TRUE(histogram.add(tensor_of(normal_values(20000, static_cast<float>(seed), seed))));
    ASSERT_TRUE(histogram.add(tensor_of({20.0f * static_cast<float>(seed)})));
    EXPECT_NEAR(entropy_threshold(histogram), published_threshold(histogram), histogram.bin_width() * 1e-6);
  }
}

TEST(Thresholds, EntropyClipsOutliersAndNothingElse) {
  Histogram far, near;
  std::vector<float> values = normal_values(100000, 1, 4);
  ASSERT_TRUE(near.add(tensor_of(values)));
  ASSERT_TRUE(far.add(tensor_of(values)));
  ASSERT_TRUE(far.add(tensor_of({100, -90})));
  EXPECT_LT(entropy_threshold(far), 10);
  EXPECT_GT(entropy_threshold(far), 2);
  Histogram even;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  ASSERT_TRUE(even.add(tensor_of(values)));
  EXPECT_GT(entropy_threshold(even), 0.95 * even.largest());
  EXPECT_LE(entropy_threshold(even), even.largest());
}

TEST(Thresholds, QuantileHoldsThatPartOfTheValues) {
  Histogram histogram;
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 1.0f);
  ASSERT_TRUE(histogram.add(tensor_of(values)));
  EXPECT_NEAR(quantile_threshold(histogram, 0.9), 900, 1);
  EXPECT_EQ(quantile_threshold(histogram, 1), 1000);
  ASSERT_TRUE(histogram.add(tensor_of(std::vector<float>(1000))));  // zeros are values, too
  EXPECT_NEAR(quantile_threshold(histogram, 0.95), 900, 1);
}

TEST(Thresholds, OfNothingAreZero) {
  Histogram histogram;
  ASSERT_TRUE(histogram.add(tensor_of({0, 0, 0})));
  EXPECT_EQ(entropy_threshold(histogram), 0);
  EXPECT_EQ(quantile_threshold(histogram, 0.5), 0);
}

}  // namespace
}  // namespace lathe
