// SPDX-License-Identifier: Apache-2.0
// Tensors that lie over each other: a run that would give wrong results is refused, and what the engine allows works.
#include <algorithm>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

// sum[n] = a + b and product[n] = a * b, n from 0 to 64; places = nonzero(b), and found are the elements of a there.
class Overlap : public NetworkTest {
 protected:
  static constexpr int kMost = 64;

  void SetUp() override {
    ITensor* a = network->addInput("a", DataType::kFLOAT, Dims{1, {-1}});
    ITensor* b = network->addInput("b", DataType::kFLOAT, Dims{1, {-1}});
    mark(network->addElementWise(*a, *b, ElementWiseOperation::kSUM)->getOutput(0), "sum");
    mark(network->addElementWise(*a, *b, ElementWiseOperation::kPROD)->getOutput(0), "product");
    ITensor* places = network->addNonZero(*b, DataType::kINT64)->getOutput(0);
    mark(places, "places");
    mark(network->addGather(*a, *places, 0)->getOutput(0), "found");
    const Dims none{1, {0}}, some{1, {8}}, most{1, {kMost}};
    add_profile({{"a", none, some, most}, {"b", none, some, most}});
    ASSERT_TRUE(make_context()) << logger.last();
    if (!on_real_gpu()) std::fill(at(0), at(1024), 0.0f);
    set_sizes(8);
    place("a", 0);
    place("b", 100);
    place("sum", 200);
    place("product", 300);
    place("places", 400);
    place("found", 500);
  }

  void set_sizes(int n) {
    for (const char* name : {"a", "b"}) ASSERT_TRUE(context->setInputShape(name, Dims{1, {n}})) << logger.last();
  }
  float* at(int i) { return static_cast<float*>(memory.get()) + i; }
  void place(const char* name, int i) { ASSERT_TRUE(context->setTensorAddress(name, at(i))) << logger.last(); }
  void expect_runs() {
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    EXPECT_TRUE(logger.text.empty()) << logger.last();
  }
  // One report, which names both.
  void expect_refused(const char* output, const char* other) {
    EXPECT_FALSE(context->enqueueV3(nullptr)) << output << " over " << other;
    ASSERT_EQ(logger.text.size(), 1u) << output << " over " << other;
    EXPECT_NE(logger.last().find("LATHE-5002"), std::string::npos) << logger.last();
    EXPECT_NE(logger.last().find("output '" + std::string(output) + "'"), std::string::npos) << logger.last();
    EXPECT_NE(logger.last().find("'" + std::string(other) + "'"), std::string::npos) << logger.last();
    logger.text.clear();
  }

  // The device's, where addresses are used as they are; 16 bytes are 4 floats.
  std::shared_ptr<void> memory = context_memory(4096);
};

TEST_F(Overlap, OfAnOutputAndAnInputIsRefused) {
  expect_runs();
  place("sum", 0);
  expect_refused("sum", "a");
  expect_refused("sum", "a");  // again
  place("sum", 4);             // the second half of a, and beyond
  expect_refused("sum", "a");
  place("sum", 96);  // from before b into its first half
  expect_refused("sum", "b");
  place("sum", 8);  // right behind a
  expect_runs();
  place("product", 104);
  expect_refused("product", "b");
  place("product", 300);
  expect_runs();
}

TEST_F(Overlap, OfOutputsIsRefused) {
  place("product", 200);
  expect_refused("product", "sum");
  place("product", 208);
  expect_runs();
}

TEST_F(Overlap, OfInputsIsAllowed) {
  place("b", 0);
  expect_runs();
  place("b", 4);
  expect_runs();
  place("sum", 8);  // behind a, within b
  expect_refused("sum", "b");
}

TEST_F(Overlap, FollowsTheSizes) {
  place("sum", 16);
  expect_runs();
  set_sizes(20);
  expect_refused("sum", "a");
  set_sizes(16);
  expect_runs();
  set_sizes(0);  // nothing lies nowhere
  place("sum", 0);
  expect_runs();
  set_sizes(4);
  expect_refused("sum", "a");
}

struct Fixed : IOutputAllocator {
  explicit Fixed(void* memory) : memory(memory) {}
  void* reallocateOutputAsync(const char*, void*, uint64_t, uint64_t, cudaStream_t) override { return memory; }
  void notifyShape(const char*, const Dims&) noexcept override {}
  void* memory;
};

TEST_F(Overlap, OfWhatAllocatorsGiveIsRefused) {
  Fixed first(at(0));
  ASSERT_TRUE(context->setOutputAllocator("sum", &first));
  expect_refused("sum", "a");
  first.memory = at(200);
  expect_runs();
  first.memory = at(300);
  expect_refused("product", "sum");
  first.memory = at(200);
  expect_runs();
  ASSERT_TRUE(context->setOutputAllocator("sum", nullptr));
}

// In the midst of the run, when its size is known.
TEST_F(Overlap, OfAnOutputWhoseSizeDependsOnDataIsRefused) {
  if (on_real_gpu()) GTEST_SKIP() << "the host cannot write the values";
  place("places", 108);  // no element yet
  expect_runs();
  *at(100) = 1;  // places now holds 8 bytes
  place("places", 104);
  expect_refused("places", "b");
  place("places", 108);
  expect_runs();
  Fixed allocated(at(4));
  ASSERT_TRUE(context->setOutputAllocator("places", &allocated));
  expect_refused("places", "a");
  allocated.memory = at(400);
  expect_runs();
  ASSERT_TRUE(context->setOutputAllocator("places", nullptr));
}

// The application has kept what it got in the last run, or given it back: the allocator may give any of it again.
TEST_F(Overlap, OfWhatAnAllocatorGaveInTheLastRunIsNone) {
  if (on_real_gpu()) GTEST_SKIP() << "the host cannot write the values";
  *at(100) = 1;
  Fixed places(at(400)), found(at(500));
  ASSERT_TRUE(context->setOutputAllocator("places", &places));
  ASSERT_TRUE(context->setOutputAllocator("found", &found));
  expect_runs();
  std::swap(places.memory, found.memory);
  expect_runs();
  places.memory = found.memory;
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_NE(logger.last().find("LATHE-5002"), std::string::npos) << logger.last();
  for (const char* name : {"places", "found"}) ASSERT_TRUE(context->setOutputAllocator(name, nullptr));
}

// A GPU works on copies of what lies in the host's memory, and copies back when all is read.
TEST_F(Overlap, OfCopiesIsNone) {
  if (!on_gpu()) GTEST_SKIP();
  std::vector<float> a(8, 3), b(8, 2), product(8);
  ASSERT_TRUE(context->setTensorAddress("a", a.data()));
  ASSERT_TRUE(context->setTensorAddress("b", b.data()));
  ASSERT_TRUE(context->setTensorAddress("sum", a.data()));
  ASSERT_TRUE(context->setTensorAddress("product", product.data()));
  expect_runs();
  EXPECT_EQ(a, std::vector<float>(8, 5));
  EXPECT_EQ(product, std::vector<float>(8, 6));
}

using OverlapOfPairs = NetworkTest;

// An output at the address of the input that it updates; its other neighbours stay refused.
TEST_F(OverlapOfPairs, IsAllowed) {
  for (const char* pair : {"1", "2"}) {
    const auto name = [&](const char* stem) { return std::string(stem) + pair; };
    ITensor* before = network->addInput(name("before").c_str(), DataType::kFLOAT, Dims4(1, 1, 4, 4));
    ITensor* update = network->addInput(name("update").c_str(), DataType::kFLOAT, Dims4(1, 1, 1, 4));
    ITensor* place = network->addInput(name("place").c_str(), DataType::kINT64, Dims{1, {1}});
    ITensor* after = network->addKVCacheUpdate(*before, *update, *place, KVCacheMode::kLINEAR)->getOutput(0);
    mark(after, name("after").c_str());
  }
  ASSERT_TRUE(make_context()) << logger.last();
  const std::shared_ptr<void> memory = context_memory(4096), places = context_memory(64);
  if (!on_real_gpu()) std::fill_n(static_cast<int64_t*>(places.get()), 8, 0);
  const auto put = [&](const char* name, int i) {
    ASSERT_TRUE(context->setTensorAddress(name, static_cast<float*>(memory.get()) + i)) << logger.last();
  };
  put("update1", 200);
  put("update2", 204);
  for (const char* name : {"place1", "place2"}) ASSERT_TRUE(context->setTensorAddress(name, places.get()));
  put("before1", 0);
  put("after1", 0);
  put("before2", 100);
  put("after2", 100);
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  put("before2", 0);  // which after1 overwrites
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_NE(logger.last().find("output 'after1'"), std::string::npos) << logger.last();
  EXPECT_NE(logger.last().find("input 'before2'"), std::string::npos) << logger.last();
  put("before2", 100);
  put("after1", 4);  // no longer at its address
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_NE(logger.last().find("input 'before1'"), std::string::npos) << logger.last();
  put("after1", 0);
  EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
  EXPECT_EQ(logger.text.size(), 2u);
}

}  // namespace
}  // namespace nvinfer1
