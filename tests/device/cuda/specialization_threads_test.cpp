// SPDX-License-Identifier: Apache-2.0
// Kernels that are specialised while contexts, the engine and the process come and go.
#include <thread>

#include "device/cuda/specialization_fixture.h"

namespace lathe::cuda {
namespace {

// No run mixes kernels or sizes: it has those of its sizes, or the open ones.
TEST_F(SpecializationTest, ManyContextsShareAnEngine) {
  constexpr int kThreads = 4, kRuns = 60;
  const auto cache = std::make_shared<KernelCache>("environment");
  constexpr int kApart = 256;  // bytes
  const DeviceMemory results = *device_->allocate(kThreads * kApart);
  const auto work = [&](int thread) {
    auto* const result = results.data() + thread * kApart;
    for (int round = 0; round < 3; ++round) {  // each with a context of its own
      const auto context = make_context(thread == 0 ? Policy::at_once : Policy::background, cache);
      EXPECT_TRUE(context->set_address(1, result));
      for (int i = 0; i < kRuns; ++i) {
        const int64_t n = 1 + (i / 3 + thread) % 6;
        const int64_t got = run(*context, n);
        EXPECT_TRUE(got == special(n) || (got == kOpen && thread != 0)) << got << " of " << n;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache->counts().compiled, 6u) << "each once";
  EXPECT_EQ(counts().failed, 0u);
}

TEST_F(SpecializationTest, AContextGoesWhileItsKernelsAreMade) {
  hold();
  auto context = make_context(Policy::background);
  run_twice(*context, 7);
  context.reset();
  EXPECT_EQ(counts().waiting, 1u) << "they are the engine's";
  go();
  wait_for_all();
  EXPECT_EQ(run(*make_context(Policy::background), 7), special(7));
}

// What is being compiled is waited for; what only waits is left out.
TEST_F(SpecializationTest, TheEngineGoesWhileItsKernelsAreMade) {
  hold();
  auto context = make_context(Policy::background);
  for (int64_t n = 1; n <= 20; ++n) run_twice(*context, n);
  std::thread later([&] {
    ::usleep(100'000);
    go();
  });
  context.reset();
  engine_.reset();
  later.join();
  const auto modules = [] {
    size_t count = 0;
    for (size_t i = 0; i < fake_cuda_calls(); ++i) count += std::strcmp(fake_cuda_call(i), "cuModuleLoadData") == 0;
    return count;
  };
  EXPECT_LT(modules(), 20u);
}

TEST_F(SpecializationTest, TheProcessEndsWhileKernelsAreMade) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("LATHE_SPECIALIZATION_FOLDER", folder_.c_str(), 1);  // which is removed here
  EXPECT_EXIT(
      {
        hold();
        static auto& left = *new std::unique_ptr<Context>(make_context(Policy::background));
        for (int64_t n = 1; n <= 20; ++n) run_twice(*left, n);
        std::exit(counts().waiting == 20 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  unsetenv("LATHE_SPECIALIZATION_FOLDER");
}

}  // namespace
}  // namespace lathe::cuda
