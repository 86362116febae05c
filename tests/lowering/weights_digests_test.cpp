// SPDX-License-Identifier: Apache-2.0
#include "lowering/weights_digests.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(WeightsDigests, AreThoseOfTheWeights) {
  use_fast_digests();
  for (const int threads : {1, 3}) {
    WeightsDigests digests(threads);
    std::vector<Digest> found(10);
    const auto weights_of = [](size_t i) {
      const std::vector<float> values(1000 * i + 1, static_cast<float>(i));
      return Tensor::from<float>({static_cast<int64_t>(values.size())}, values);
    };
    for (size_t i = 0; i < found.size(); ++i) digests.add(weights_of(i), found[i]);
    digests.find();
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], digest_of(weights_of(i).raw()));
  }
}

TEST(WeightsDigests, WeightsAreLetGoOf) {
  WeightsDigests digests(2);
  Digest found;
  std::weak_ptr<const void> memory;
  {
    const Tensor weights = Tensor::of<float>({2}, {1, 2});
    memory = weights.owner();
    digests.add(weights, found);
  }
  EXPECT_FALSE(memory.expired());
  digests.find();
  EXPECT_TRUE(memory.expired());
}

}  // namespace
}  // namespace lathe
