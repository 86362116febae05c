// SPDX-License-Identifier: Apache-2.0
// How much of the L2 cache contexts have set aside: S143 to S145.
#include "device/cuda/enqueue_fixture.h"

namespace lathe::cuda {
namespace {

constexpr size_t kMost = size_t{30} << 20;  // of the stand-in's device

struct Warnings final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity == Severity::kWARNING) lines.emplace_back(message);
  }
  std::vector<std::string> lines;
};

class CacheLimitTest : public EnqueueTest {
 protected:
  std::unique_ptr<nv::IExecutionContext> make() {
    std::unique_ptr<nv::IExecutionContext> context(engine_->createExecutionContext());
    EXPECT_TRUE(context && context->setTensorAddress("x", x_.data()) && context->setTensorAddress("y", y_.data()));
    return context;
  }
};

// S143.
TEST_F(CacheLimitTest, StreamsGetAWindowWhileAContextRuns) {
  EXPECT_EQ(context_->getPersistentCacheLimit(), 0u);
  run(4, 1);
  EXPECT_EQ(fake_cuda_cache_windows(), 0u);
  context_->setPersistentCacheLimit(64);
  EXPECT_EQ(context_->getPersistentCacheLimit(), 64u);
  EXPECT_EQ(fake_cuda_cache_aside(), 64u);
  run(4, 2);
  const size_t windows = fake_cuda_cache_windows();
  ASSERT_GE(windows, 2u);
  EXPECT_EQ(fake_cuda_cache_window(0), 64u);
  EXPECT_EQ(fake_cuda_cache_window(windows - 1), 0u);  // the stream is the application's
  context_->setPersistentCacheLimit(0);
  EXPECT_EQ(fake_cuda_cache_aside(), 0u);
  run(4, 3);
  EXPECT_EQ(fake_cuda_cache_windows(), windows);
}

// S144, S145.
TEST_F(CacheLimitTest, ContextsShareTheCache) {
  const std::unique_ptr<nv::IExecutionContext> other = make();
  context_->setPersistentCacheLimit(kMost / 2);
  EXPECT_EQ(other->getPersistentCacheLimit(), 0u);
  other->setPersistentCacheLimit(kMost / 4);
  EXPECT_EQ(context_->getPersistentCacheLimit(), kMost / 2);
  EXPECT_EQ(fake_cuda_cache_aside(), kMost / 2 + kMost / 4);
  context_.reset();
  EXPECT_EQ(fake_cuda_cache_aside(), kMost / 4);
}

// S145.
TEST_F(CacheLimitTest, MoreThanThereIsIsRefused) {
  context_->setPersistentCacheLimit(kMost + 1);
  EXPECT_NE(log_.text.find("can set aside 31457280"), std::string::npos) << log_.text;
  EXPECT_EQ(context_->getPersistentCacheLimit(), 0u);
  Warnings warnings;
  const std::unique_ptr<nv::IHostMemory> plan(engine_->serialize());
  const std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(warnings));
  const std::unique_ptr<nv::ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
  const std::unique_ptr<nv::IExecutionContext> one(engine->createExecutionContext()),
      two(engine->createExecutionContext());
  one->setPersistentCacheLimit(kMost);
  EXPECT_TRUE(warnings.lines.empty()) << warnings.lines[0];
  two->setPersistentCacheLimit(1024);
  ASSERT_EQ(warnings.lines.size(), 1u);
  EXPECT_NE(warnings.lines[0].find("take each other's place"), std::string::npos) << warnings.lines[0];
  EXPECT_EQ(fake_cuda_cache_aside(), kMost);
}

}  // namespace
}  // namespace lathe::cuda
