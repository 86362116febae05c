// SPDX-License-Identifier: Apache-2.0
// Caches that the application keeps between runs: one address for what is read and what is written.
#include <cstring>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

// after = before with update written at place; sum = after + after. What else reads `before`.
class KeyValueCache : public NetworkTest {
 protected:
  static constexpr int kRows = 4, kValues = 2 * kRows;

  enum class Reader {
    none,
    sum,     // sum = after + before
    update,  // what is written is the row that was there and the update
    beside,  // sum is that
  };

  void build(Reader reader, int64_t batch = 1) {
    ITensor* before = network->addInput("before", DataType::kFLOAT, Dims4(batch, 1, kRows, 2));
    ITensor* update = network->addInput("update", DataType::kFLOAT, Dims4(batch, 1, 1, 2));
    ITensor* place = network->addInput("place", DataType::kINT64, Dims{1, {batch}});
    if (reader == Reader::update || reader == Reader::beside) {
      ITensor* row = network->addGather(*before, *place, 2)->getOutput(0);
      row = network->addElementWise(*row, *update, ElementWiseOperation::kSUM)->getOutput(0);
      if (reader == Reader::update)
        update = row;
      else
        mark(row, "sum");
    }
    ITensor* after = network->addKVCacheUpdate(*before, *update, *place, KVCacheMode::kLINEAR)->getOutput(0);
    mark(after, "after");
    ITensor* other = reader == Reader::sum ? before : after;
    if (reader != Reader::beside)
      mark(network->addElementWise(*after, *other, ElementWiseOperation::kSUM)->getOutput(0), "sum");
    ASSERT_TRUE(make_context()) << logger.last();
  }

  void run(float* before, float* after, std::vector<float> rows, int64_t place) {
    context->setTensorAddress("before", before);
    context->setTensorAddress("update", rows.data());
    context->setTensorAddress("place", &place);
    context->setTensorAddress("after", after);
    context->setTensorAddress("sum", sum);
    ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  }

  float sum[kValues] = {};
};

TEST_F(KeyValueCache, IsUpdatedInPlace) {
  build(Reader::none);
  EXPECT_STREQ(engine->getAliasedInputTensor("after"), "before");
  EXPECT_EQ(engine->getAliasedInputTensor("sum"), nullptr);
  EXPECT_EQ(engine->getAliasedInputTensor("before"), nullptr);
  float cache[kValues] = {0, 1, 2, 3, 4, 5, 6, 7};
  run(cache, cache, {-1, -2}, 2);
  run(cache, cache, {-3, -4}, 0);
  const std::vector<float> expected{-3, -4, 2, 3, -1, -2, 6, 7};
  EXPECT_EQ(std::vector<float>(cache, cache + kValues), expected);
  for (int i = 0; i < kValues; ++i) EXPECT_EQ(sum[i], 2 * expected[static_cast<size_t>(i)]);
}

// As the documentation of ONNX's TensorScatter has it: nothing asks for one address.
TEST_F(KeyValueCache, IsCopiedToAnotherAddress) {
  build(Reader::none);
  float before[kValues] = {0, 1, 2, 3, 4, 5, 6, 7}, after[kValues] = {};
  run(before, after, {-1, -2}, 3);
  EXPECT_EQ(before[6], 6);
  EXPECT_EQ(std::vector<float>(after, after + kValues), (std::vector<float>{0, 1, 2, 3, 4, 5, -1, -2}));
}

TEST_F(KeyValueCache, ThatIsReadElsewhereIsNoAlias) {
  build(Reader::sum);
  EXPECT_EQ(engine->getAliasedInputTensor("after"), nullptr);
  float before[kValues] = {0, 1, 2, 3, 4, 5, 6, 7}, after[kValues] = {};
  run(before, after, {-1, -2}, 3);
  EXPECT_EQ(std::vector<float>(sum, sum + kValues), (std::vector<float>{0, 2, 4, 6, 8, 10, 5, 5}));
}

TEST_F(KeyValueCache, IsUpdatedInPlaceByWhatWasReadOfIt) {
  build(Reader::update);
  EXPECT_STREQ(engine->getAliasedInputTensor("after"), "before");
  float cache[kValues] = {0, 1, 2, 3, 4, 5, 6, 7};
  run(cache, cache, {-1, -2}, 2);
  run(cache, cache, {-1, -2}, 2);
  EXPECT_EQ(std::vector<float>(cache, cache + kValues), (std::vector<float>{0, 1, 2, 3, 2, 1, 6, 7}));
}

TEST_F(KeyValueCache, IsNoAliasOfWhatIsReadBesideTheChange) {
  build(Reader::beside);
  EXPECT_EQ(engine->getAliasedInputTensor("after"), nullptr);
  float before[kValues] = {0, 1, 2, 3, 4, 5, 6, 7}, after[kValues] = {};
  run(before, after, {-1, -2}, 3);
  EXPECT_EQ(std::vector<float>(sum, sum + 2), (std::vector<float>{5, 5}));
}

// That of the second text is wrong, and the first one's cache stays.
TEST_F(KeyValueCache, PlacesBeyondItAreRefused) {
  if (on_gpu()) GTEST_SKIP() << "device code drops what lies outside";
  build(Reader::none, 2);
  std::vector<float> cache(2 * kValues), sums(2 * kValues), rows{1, 2, 3, 4};
  int64_t places[] = {0, kRows};
  context->setTensorAddress("before", cache.data());
  context->setTensorAddress("update", rows.data());
  context->setTensorAddress("place", places);
  context->setTensorAddress("after", cache.data());
  context->setTensorAddress("sum", sums.data());
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_NE(logger.last().find("1 indices from 4 on are outside [0, 4) of axis 2"), std::string::npos) << logger.last();
  EXPECT_EQ(cache, std::vector<float>(2 * kValues));
}

}  // namespace
}  // namespace nvinfer1
