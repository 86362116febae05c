// SPDX-License-Identifier: Apache-2.0
// Outputs whose sizes only running tells: what a context says of them, and where they go.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

struct Keeping : IOutputAllocator {
  ~Keeping() override { std::free(memory); }
  void* reallocateOutputAsync(const char* name, void* current, uint64_t size, uint64_t alignment,
                              cudaStream_t) override {
    ++calls;
    given.push_back(current);
    EXPECT_STREQ(name, "places");
    EXPECT_GT(size, 0u);
    if (size <= bytes) return memory;
    std::free(memory);
    bytes = (size + alignment - 1) / alignment * alignment;
    return memory = refuses ? nullptr : std::aligned_alloc(alignment, bytes);
  }
  void notifyShape(const char*, const Dims& dims) noexcept override {
    ++told;
    shape = dims;
  }
  void* memory = nullptr;
  uint64_t bytes = 0;
  bool refuses = false;
  int calls = 0, told = 0;
  Dims shape{};
  std::vector<void*> given;
};

// places = nonzero(x[n, 3]), n from 1 to 8; twice = x + x.
class DataDependent : public NetworkTest {
 protected:
  void SetUp() override {
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(-1, 3));
    mark(network->addNonZero(*x, DataType::kINT64)->getOutput(0), "places");
    add_profile({{"x", Dims2(1, 3), Dims2(4, 3), Dims2(8, 3)}});
    ASSERT_TRUE(make_context()) << logger.last();
  }

  alignas(256) const float x[24] = {0, 1, 0, 2, 0, 3};
};

TEST_F(DataDependent, SizesAreBoundedBeforeTheRunAndKnownBehindIt) {
  EXPECT_EQ(engine->getTensorShape("places").d[0], 2);
  EXPECT_EQ(engine->getTensorShape("places").d[1], -1);
  ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  EXPECT_EQ(context->inferShapes(0, nullptr), 0) << logger.last();
  EXPECT_EQ(context->getTensorShape("places").d[1], -1);
  EXPECT_EQ(context->getMaxOutputSize("places"), 2 * 6 * 8);
  ASSERT_TRUE(context->setInputShape("x", Dims2(8, 3)));
  EXPECT_EQ(context->getMaxOutputSize("places"), 2 * 24 * 8);

  ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  alignas(256) int64_t places[12] = {};
  ASSERT_TRUE(context->setInputTensorAddress("x", x));
  ASSERT_TRUE(context->setOutputTensorAddress("places", places));
  ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(context->getTensorShape("places").d[1], 3);
  EXPECT_EQ(context->getMaxOutputSize("places"), 2 * 6 * 8);  // in the next run
  EXPECT_EQ(std::vector<int64_t>(places, places + 6), (std::vector<int64_t>{0, 1, 1, 1, 0, 2}));
}

TEST_F(DataDependent, AllocatorsAreAskedOncePerRun) {
  Keeping allocator;
  ASSERT_TRUE(context->setOutputAllocator("places", &allocator));
  ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  ASSERT_TRUE(context->setInputTensorAddress("x", x));
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    EXPECT_EQ(allocator.calls, run);
    EXPECT_EQ(allocator.told, run);
    EXPECT_EQ(allocator.shape.nbDims, 2);
    EXPECT_EQ(allocator.shape.d[1], 3);
    EXPECT_EQ(context->getOutputTensorAddress("places"), allocator.memory);
  }
  EXPECT_EQ(allocator.given, (std::vector<void*>{nullptr, allocator.memory, allocator.memory}));
}

TEST_F(DataDependent, AnEmptyOutputHasAShape) {
  Keeping allocator;
  const float none[6] = {};
  ASSERT_TRUE(context->setOutputAllocator("places", &allocator));
  ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  ASSERT_TRUE(context->setInputTensorAddress("x", none));
  ASSERT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(allocator.told, 1);
  EXPECT_EQ(allocator.shape.d[1], 0);
}

TEST_F(DataDependent, AnAllocatorThatHasNoMemoryFailsTheRunAlone) {
  Keeping allocator;
  allocator.refuses = true;
  ASSERT_TRUE(context->setOutputAllocator("places", &allocator));
  ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  ASSERT_TRUE(context->setInputTensorAddress("x", x));
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.last().find("Error Code 5"), std::string::npos) << logger.last();
  EXPECT_EQ(allocator.told, 0);
  allocator.refuses = false;
  allocator.bytes = 0;
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
}

TEST_F(DataDependent, NoBoundIsKnownBeforeTheInputs) {
  EXPECT_EQ(context->getMaxOutputSize("places"), -1);
  EXPECT_EQ(logger.text.size(), 1u) << logger.last();
  EXPECT_EQ(context->getMaxOutputSize("x"), -1);
  EXPECT_EQ(context->getMaxOutputSize("nobody"), -1);
  EXPECT_EQ(logger.text.size(), 3u) << logger.last();
}

// It does not fit what getMaxOutputSize() says, but what the address holds is not known to anyone.
TEST_F(DataDependent, WithoutMemoryTheRunIsRefused) {
  ASSERT_TRUE(context->setInputShape("x", Dims2(2, 3)));
  ASSERT_TRUE(context->setInputTensorAddress("x", x));
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_EQ(logger.text.size(), 1u);
  EXPECT_NE(logger.last().find("'places'"), std::string::npos) << logger.last();
}

}  // namespace
}  // namespace nvinfer1
