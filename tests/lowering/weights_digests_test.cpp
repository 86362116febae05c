// SPDX-License-Identifier: Apache-2.0
#include "lowering/weights_digests.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/tensor.h"

namespace lathe {
namespace {

TEST(WeightsDigests, AreThoseOfTheWeights) {
  use_fast_digests();
  for (const int threads : {1, 3}) {
    WeightsDigests digests(threads);
    std::vector<Digest> found(10);
    const auto weights_of = [](size_t i) {
      const std::vector<float> values(20'000 * i + 1, static_cast<float>(i));
      return Tensor::from<float>({static_cast<int64_t>(values.size())}, values);
    };
    for (int round = 0; round < 2; ++round) {
      std::ranges::fill(found, Digest());
      for (size_t i = 0; i < found.size(); ++i) {
        const Tensor weights = weights_of(i);
        digests.add(weights.raw(), weights.owner(), found[i]);
      }
      digests.find();
      for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], digest_of(weights_of(i).raw()));
    }
  }
}

TEST(WeightsDigests, WeightsAreLetGoOf) {
  for (const int threads : {1, 2}) {
    WeightsDigests digests(threads);
    Digest found;
    std::weak_ptr<const void> memory;
    {
      const Tensor weights = Tensor::of<float>({2}, {1, 2});
      memory = weights.owner();
      digests.add(weights.raw(), weights.owner(), found);
    }
    digests.find();
    EXPECT_TRUE(memory.expired());
  }
}

// Of a build that failed, say.
TEST(WeightsDigests, MayEndBeforeAllAreFound) {
  std::vector<Digest> found(100);
  const std::vector<std::byte> weights(100'000);
  WeightsDigests digests(2);
  for (Digest& digest : found) digests.add(weights, nullptr, digest);
}

}  // namespace
}  // namespace lathe
