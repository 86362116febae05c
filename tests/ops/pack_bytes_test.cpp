// SPDX-License-Identifier: Apache-2.0
// Packings of bytes, in parts, and the packing between two orders of the same weights.
#include "ops/pack_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>

namespace lathe {
namespace {

using Bytes = std::vector<std::byte>;

int64_t count(const Packing& packing) { return *checked_volume(packing.dims); }

Bytes packed(const Packing& packing, const Bytes& source, size_t size, int64_t parts = 1) {
  Bytes result(static_cast<size_t>(count(packing)) * size);
  EXPECT_TRUE(check_packing(packing, static_cast<int64_t>(source.size() / size), count(packing)));
  for (int64_t i = 0; i < parts; ++i) pack_bytes(packing, size, source.data(), result.data(), {i, parts});
  return result;
}

Bytes random_bytes(size_t size) {
  std::mt19937 random(7);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(1 + random() % 255);
  return bytes;
}

// [outputs][inputs][taps] as kernels for GPUs have them: rows of taps and, innermost, channels, padded.
Packing rows(int64_t outputs, int64_t inputs, int64_t taps, int64_t padded) {
  const int64_t pitch = taps * padded;
  return {{outputs, pitch}, {{0, 0, {outputs, inputs, taps}, {inputs * taps, taps, 1}, {pitch, 1, padded}}}};
}

// As those for CPUs have them: panels of so many outputs, the last one narrower and in a box of its own.
Packing panels(int64_t outputs, int64_t inputs, int64_t taps, int64_t width) {
  const int64_t k = inputs * taps, whole = outputs / width, rest = outputs % width;
  Packing packing{{(whole + (rest > 0)) * width * k}, {}};
  if (whole > 0)
    packing.boxes.push_back(
        {0, 0, {whole, inputs, taps, width}, {width * k, taps, 1, k}, {width * k, width, inputs * width, 1}});
  if (rest > 0)
    packing.boxes.push_back({whole * width * k,
                             whole * width * k,
                             {1, inputs, taps, rest},
                             {width * k, taps, 1, k},
                             {width * k, width, inputs * width, 1}});
  return packing;
}

TEST(PackedBytes, PartsMakeTheWhole) {
  const Packing packing = panels(70, 33, 9, 16);
  for (const size_t size : {1, 2, 4, 8}) {
    const Bytes source = random_bytes(70 * 33 * 9 * size), whole = packed(packing, source, size);
    for (const int64_t i : {0, 1, 32 * 9, 69 * 33 * 9 + 5}) {  // element by element, as the packing is meant
      const int64_t output = i / (33 * 9), input = i / 9 % 33, tap = i % 9;
      const int64_t at = output / 16 * 16 * 33 * 9 + (tap * 33 + input) * 16 + output % 16;
      EXPECT_TRUE(std::equal(source.begin() + i * static_cast<int64_t>(size),
                             source.begin() + (i + 1) * static_cast<int64_t>(size),
                             whole.begin() + at * static_cast<int64_t>(size)))
          << size << " " << i;
    }
    for (const int64_t parts : {2, 3, 100}) EXPECT_EQ(packed(packing, source, size, parts), whole) << size;
  }
}

// Random boxes of dense sources and results whose axes are permuted, cut at both ends and split, as kernels' orders
// are.
struct RandomBox {
  explicit RandomBox(std::mt19937& random) {
    const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
    const size_t rank = 1 + static_cast<size_t>(below(4));
    static constexpr int64_t kExtents[] = {1, 2, 2, 4, 9, 16, 31, 64, 100};
    std::vector<size_t> places(rank);
    for (size_t d = 0; d < rank; ++d) {
      box.extents.push_back(volume() > 100'000 ? 1 : kExtents[below(9)]);
      places[d] = d;
    }
    box.from_strides = strides(
        places, [&] { return below(4) == 0 ? below(3) : 0; }, from_volume);
    std::ranges::shuffle(places, random);
    box.to_strides = strides(
        places, [&] { return below(4) == 0 ? below(20) : 0; }, to_volume);
    box.from = below(3), box.to = below(2) * 16 + below(2);
    from_volume += box.from, to_volume += box.to;
  }
  int64_t volume() const { return *checked_volume(box.extents); }

  template <class Gap>
  Dims strides(const std::vector<size_t>& places, Gap gap, int64_t& end) const {
    Dims strides(places.size());
    end = 1;
    for (size_t i = places.size(); i-- > 0;) {
      strides[places[i]] = end;
      end = end * box.extents[places[i]] + gap();
    }
    return strides;
  }

  PackingBox box;
  int64_t from_volume = 1, to_volume = 1;
};

Bytes element_by_element(const RandomBox& made, const Bytes& source, size_t size) {
  Bytes result(static_cast<size_t>(made.to_volume) * size);
  const auto& [from, to, extents, from_strides, to_strides] = made.box;
  for (int64_t i = 0; i < made.volume(); ++i) {
    int64_t rest = i, source_at = from, result_at = to;
    for (size_t d = extents.size(); d-- > 0; rest /= extents[d]) {
      source_at += rest % extents[d] * from_strides[d];
      result_at += rest % extents[d] * to_strides[d];
    }
    std::memcpy(&result[static_cast<size_t>(result_at) * size], &source[static_cast<size_t>(source_at) * size], size);
  }
  return result;
}

TEST(PackedBytes, AreThoseOfALoopOverElements) {
  std::mt19937 random(11);
  for (int i = 0; i < 1000; ++i) {
    const RandomBox made(random);
    const Packing packing{{made.to_volume}, {made.box}};
    const size_t size = size_t{1} << (random() % 4);
    const Bytes source = random_bytes(static_cast<size_t>(made.from_volume) * size);
    const Bytes wanted = element_by_element(made, source, size);
    ASSERT_TRUE(check_packing(packing, made.from_volume, made.to_volume));
    for (const Written written : {Written::to_caches, Written::past_caches})
      for (const int64_t parts : {1, 3}) {
        Bytes result(wanted.size());
        for (int64_t part = 0; part < parts; ++part)
          pack_bytes(packing, size, source.data(), result.data(), {part, parts}, written);
        ASSERT_EQ(result, wanted) << i << " " << size << " " << lathe::to_string(to_shape(made.box.extents));
      }
  }
}

// Factors of channels whose elements are lines of the box.
TEST(PackedBytes, AreScaledOnTheirWay) {
  std::mt19937 random(13);
  std::normal_distribution<double> normal;
  int taken = 0;
  for (int i = 0; i < 800; ++i) {
    const RandomBox made(random);
    const auto innermost = std::ranges::find(made.box.to_strides, 1) - made.box.to_strides.begin();
    const int64_t each = made.box.from_strides[static_cast<size_t>(innermost)];
    if (!takes_factors(made.box, each)) continue;
    ++taken;
    std::vector<double> factors(static_cast<size_t>(made.from_volume / each + 1));
    for (double& factor : factors) {
      factor = normal(random);
      if (i % 2 == 0) factor = static_cast<float>(factor);
    }
    std::vector<float> source(static_cast<size_t>(made.from_volume)), scaled(source.size());
    for (size_t k = 0; k < source.size(); ++k) {
      source[k] = static_cast<float>(std::ldexp(normal(random), static_cast<int>(random() % 280) - 150));
      if (random() % 500 == 0) source[k] = random() % 2 == 0 ? NAN : -INFINITY;
      scaled[k] = static_cast<float>(source[k] * factors[k / static_cast<size_t>(each)]);
    }
    const auto bytes = std::as_bytes(std::span(scaled));
    const Bytes wanted = element_by_element(made, Bytes(bytes.begin(), bytes.end()), sizeof(float));
    for (const Written written : {Written::to_caches, Written::past_caches}) {
      std::vector<float> result(wanted.size() / sizeof(float));
      pack_box_scaled(made.box, source.data(), result.data(), {factors.data(), each}, written);
      ASSERT_TRUE(std::ranges::equal(std::as_bytes(std::span(result)), wanted))
          << i << " " << each << " " << lathe::to_string(to_shape(made.box.extents));
    }
  }
  EXPECT_GT(taken, 60);
}

TEST(PackedBytes, AreNotScaledWhereALineHasSeveralFactors) {
  const auto takes = [](int64_t each, int64_t from = 0) {
    return takes_factors({from, 0, {2, 10, 16}, {160, 1, 10}, {160, 16, 1}}, each);
  };
  EXPECT_TRUE(takes(10));
  EXPECT_FALSE(takes(10, 1));  // lines that begin and end within channels
  EXPECT_FALSE(takes(5));
  EXPECT_FALSE(takes(20));
  EXPECT_FALSE(takes_factors({0, 0, {16, 10}, {10, 1}, {10, 1}}, 10));   // lines stay lines
  EXPECT_FALSE(takes_factors({19, 0, {10, 2}, {-1, -10}, {2, 1}}, 10));  // backwards
}

TEST(PackedBytes, OfManyAreDoneByAsManyThreadsAsOneLikes) {
  const Packing packing = panels(70, 33, 9, 16), plain = no_packing(3'000'000);
  const Bytes source = random_bytes(70 * 33 * 9 * 4), large = random_bytes(18'000'000);
  const Bytes wanted = packed(packing, source, 4);
  for (const int threads : {0, 1, 4})
    for (const bool past_caches : {false, true}) {
      Bytes result(wanted.size()), copy(large.size());
      std::vector<PackingWork> works = {{&packing, 4, source.data(), result.data()}};
      if (past_caches)
        for (size_t i = 0; i < 6; ++i) works.push_back({&plain, 1, &large[i * 3'000'000], &copy[i * 3'000'000]});
      pack_all(works, threads);
      EXPECT_EQ(result, wanted);
      EXPECT_EQ(copy, past_caches ? large : Bytes(large.size()));
    }
}

TEST(PackedBytes, FollowFromEachOther) {
  struct Case {
    int64_t outputs, inputs, taps, padded, width, other_width;
  };
  for (const auto& [outputs, inputs, taps, padded, width, other_width] :
       {Case{64, 3, 49, 4, 16, 32}, Case{64, 32, 9, 32, 16, 48}, Case{96, 5, 1, 8, 48, 16}, Case{70, 4, 9, 4, 16, 8},
        Case{1, 16, 1, 16, 8, 16}, Case{10, 7, 1, 8, 4, 2}}) {
    const int64_t volume = outputs * inputs * taps;
    const Bytes weights = random_bytes(static_cast<size_t>(volume) * 4);
    const std::array orders = {no_packing(volume), rows(outputs, inputs, taps, padded),
                               panels(outputs, inputs, taps, width), panels(outputs, inputs, taps, other_width)};
    for (size_t i = 0; i < orders.size(); ++i)
      for (size_t j = 0; j < orders.size(); ++j) {
        const std::optional<Packing> between = packing_between(orders[i], orders[j]);
        EXPECT_TRUE(between || i >= 2) << i << " " << j << " of " << outputs;  // models and GPUs have the first two
        EXPECT_TRUE(!between || orders[i].boxes.size() == 1);
        if (!between) continue;
        EXPECT_EQ(packed(*between, packed(orders[i], weights, 4), 4), packed(orders[j], weights, 4))
            << i << " " << j << " of " << outputs;
      }
  }
}

TEST(PackedBytes, WhatDropsWeightsIsNoSource) {
  const Packing all = no_packing(24);
  EXPECT_FALSE(packing_between({{12}, {{0, 0, {12}, {2}, {1}}}}, all));           // each second one
  EXPECT_FALSE(packing_between({{20}, {{0, 0, {20}, {1}, {1}}}}, all));           // the first ones
  EXPECT_FALSE(packing_between({{24}, {{4, 0, {20}, {1}, {1}}}}, all));           // but for the first ones
  EXPECT_FALSE(packing_between({{24}, {{0, 0, {24}, {0}, {1}}}}, all));           // one of them alone
  EXPECT_FALSE(packing_between({{24}, {{0, 0, {4, 6}, {6, -1}, {1, 4}}}}, all));  // backwards
  EXPECT_FALSE(packing_between({{24}, {{0, 0, {INT64_MAX, 6}, {6, 1}, {1, 4}}}}, all));
  EXPECT_FALSE(packing_between(all, {{24}, {{-1, 0, {24}, {1}, {1}}}}));
  EXPECT_FALSE(packing_between(all, {{24}, {{0, 0, {24}, {INT64_MAX / 2}, {1}}}}));
  EXPECT_FALSE(packing_between({{24}, {}}, all));
  EXPECT_FALSE(packing_between({{24}, {{0, 0, {4, 6}, {6, 1}, {1, 4}}}}, {{24}, {{0, 0, {24}, {1}, {INT64_MAX / 2}}}}));
}

// Of a file: boxes that write more than there is would cost more than the file's size tells.
TEST(PackedBytes, BoxesWriteNoMoreThanThereIs) {
  const PackingBox whole{0, 0, {6}, {1}, {1}};
  EXPECT_TRUE(check_packing({{6}, {whole}}, 6, 6));
  EXPECT_FALSE(check_packing({{6}, {whole, whole}}, 6, 6));
  EXPECT_FALSE(check_packing({{6}, {{0, 0, {1000, 6}, {0, 1}, {0, 1}}}}, 6, 6));
  EXPECT_FALSE(check_packing({{6}, {{0, 0, {INT64_MAX, INT64_MAX}, {0, 0}, {0, 0}}}}, 6, 6));
  EXPECT_FALSE(check_packing({{6}, {{0, 1, {6}, {1}, {1}}}}, 6, 6));
  EXPECT_FALSE(check_packing({{6}, {{1, 0, {6}, {1}, {1}}}}, 6, 6));
}

}  // namespace
}  // namespace lathe
