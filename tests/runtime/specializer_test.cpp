// SPDX-License-Identifier: Apache-2.0
// Kernels for sizes: how many are kept and wait, and threads that want them, on a device that compiles at once or as
// slowly as a test says.
#include "runtime/specializer.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "base/processors.h"
#include "device/null/null_device.h"

namespace lathe {
namespace {

// Its kernels are known by the workspace that they want: the number that they were compiled for.
class NumberKernel final : public Kernel {
 public:
  explicit NumberKernel(size_t number) : number_(number) {}
  Result<size_t> prepare(const Operands&, int) const override { return number_; }
  Result<> enqueue(const Operands&, std::byte*, Queue&) const override { return {}; }

 private:
  const size_t number_;
};

class CompilingDevice final : public null::NullDevice {
 public:
  Result<std::vector<std::byte>> specialize(const CodeImage&, std::span<const SourceFile>, const Launch&,
                                            std::span<const int64_t> numbers) override {
    ++compiled;
    while (is_held) std::this_thread::yield();
    if (fails) return fail(ErrorCode::kernel_compile_failed, "no");
    const auto bytes = std::as_bytes(numbers);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) override {
    launches = record.launches.size();
    int64_t number = 0;
    std::memcpy(&number, record.code[record.launches[0].code].data(), sizeof number);
    return std::make_unique<NumberKernel>(static_cast<size_t>(number));
  }
  std::atomic<size_t> compiled = 0, launches = 0;
  std::atomic<bool> is_held = false, fails = false;
};

class SpecializerTest : public testing::Test {
 protected:
  void SetUp() override {
    plan_.symbols = {{"n", SymbolSource::input_dim, 0, 0, {1, 1 << 20}}};
    Launch launch;
    launch.entry = "kernel";
    launch.args = {{LaunchArg::number, 0, Expr::symbol(0)}};
    for (int i = 0; i < 2; ++i)  // two steps of the same code
      plan_.steps.emplace_back().work = plan::DeviceLaunches{"kernel", "", {launch}, {}};
    static constexpr std::byte kText[1] = {};
    plan_.codes = {{{{CodeForm::source, "null", kText}}}};
    specializer_ = Specializer::create(plan_, device_);
    ASSERT_NE(specializer_, nullptr);
  }
  using Kernels = std::shared_ptr<const SpecializedKernels>;
  Kernels want(int64_t n) { return specializer_->want(std::array{n}, {nullptr, &null_log()}); }
  Kernels wait_for(int64_t n) {
    Kernels kernels = want(n);
    specializer_->wait(*kernels);
    return kernels;
  }
  static int64_t number_of(const Kernels& kernels, size_t step = 0) {
    const Kernel* const kernel = kernels->of(step);
    return kernel ? static_cast<int64_t>(kernel->prepare({}, 1).value()) : -1;
  }

  plan::Plan plan_;
  CompilingDevice device_;
  std::unique_ptr<Specializer> specializer_;
};

TEST_F(SpecializerTest, StepsOfTheSameCodeShareIt) {
  const Kernels kernels = wait_for(7);
  EXPECT_EQ(number_of(kernels, 0), 7);
  EXPECT_EQ(number_of(kernels, 1), 7);
  EXPECT_EQ(device_.compiled, 1u);
  EXPECT_EQ(want(7), kernels);
  EXPECT_EQ(want(Expr::kUnbound), nullptr) << "a size that is not known";
}

TEST_F(SpecializerTest, WhatIsNotLaunchedIsNotCompiled) {
  const Expr n = Expr::symbol(0);
  const auto launches = [&](Expr grid, Expr number) {
    Launch launch;
    launch.entry = "kernel";
    launch.grid[0] = std::move(grid);
    launch.args = {{LaunchArg::number, 0, std::move(number)}};
    return launch;
  };
  const Expr is_large = min(Expr(1), floordiv(n, Expr(100)));
  plan_.steps.resize(1);
  plan_.steps[0].work = plan::DeviceLaunches{
      "kernel", "", {launches(Expr(1) - is_large, n), launches(is_large, n + Expr(5000)), launches(is_large, n)}, {}};
  specializer_ = Specializer::create(plan_, device_);
  EXPECT_EQ(number_of(wait_for(7)), 7);
  EXPECT_EQ(device_.compiled, 1u);
  EXPECT_EQ(device_.launches, 1u);
  EXPECT_EQ(number_of(wait_for(200)), 5200);
  EXPECT_EQ(device_.compiled, 3u);
  EXPECT_EQ(device_.launches, 2u);
  EXPECT_EQ(specializer_->counts().made, 3u);
  EXPECT_EQ(specializer_->counts().failed, 0u);
}

TEST_F(SpecializerTest, WhatIsAllInTheCacheIsNotMissing) {
  const Expr n = Expr::symbol(0);
  Launch first = std::get<plan::DeviceLaunches>(plan_.steps[0].work).launches[0], second = first;
  second.args[0].value = n + Expr(5000);
  plan_.steps.resize(1);
  plan_.steps[0].work = plan::DeviceLaunches{"kernel", "", {first, second}, {}};
  specializer_ = Specializer::create(plan_, device_);
  const auto cache = std::make_shared<KernelCache>("");
  const std::array<int64_t, 1> symbols = {7};
  using IfMissing = Specializer::IfMissing;
  const auto want_it = [&](IfMissing if_missing = IfMissing::load) {
    return specializer_->want(symbols, {cache, &null_log()}, if_missing);
  };
  const OpenSteps steps(plan_, device_);
  const std::vector<int64_t> numbers = *steps.numbers(symbols);
  for (size_t site = 0; site < 2; ++site) {
    EXPECT_EQ(want_it(), nullptr);
    cache->put(steps.key(site, numbers), {std::as_bytes(std::span(&numbers[site], 1)), nullptr});
  }
  EXPECT_EQ(want_it(IfMissing::leave), nullptr);
  EXPECT_EQ(specializer_->counts().sizes, 0u);
  const Kernels kernels = want_it();
  ASSERT_NE(kernels, nullptr);
  EXPECT_EQ(want_it(IfMissing::leave), kernels);
  specializer_->wait(*kernels);
  EXPECT_EQ(number_of(kernels), 7);
  EXPECT_EQ(device_.compiled, 0u);
  EXPECT_EQ(cache->counts().hits, 2u) << "to look for code is no use of it";
}

// All of nothing would be a place taken by each size.
TEST_F(SpecializerTest, NothingIsLoadedWhereNothingIsLaunched) {
  Launch launch = std::get<plan::DeviceLaunches>(plan_.steps[0].work).launches[0];
  launch.grid[0] = floordiv(Expr::symbol(0), Expr(100));
  plan_.steps.resize(1);
  plan_.steps[0].work = plan::DeviceLaunches{"kernel", "", {launch}, {}};
  specializer_ = Specializer::create(plan_, device_);
  const Specializer::Client client{nullptr, &null_log()};
  for (const int64_t n : {7, 200})
    EXPECT_EQ(specializer_->want(std::array{n}, client, Specializer::IfMissing::load), nullptr);
  EXPECT_EQ(specializer_->counts().sizes, 0u);
}

TEST_F(SpecializerTest, TenThousandSizesTakeNoMoreMemoryThanSoMany) {
  for (int64_t n = 1; n <= 10'000; ++n) ASSERT_EQ(number_of(wait_for(n)), n);
  const Specializer::Counts counts = specializer_->counts();
  EXPECT_EQ(counts.sizes, Specializer::kMostSizes);
  EXPECT_EQ(counts.evicted, 10'000 - Specializer::kMostSizes);
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_EQ(device_.compiled, 10'000u);
  EXPECT_EQ(number_of(wait_for(1)), 1);
  EXPECT_EQ(device_.compiled, 10'000u) << "its code is still in memory";
}

TEST_F(SpecializerTest, TenThousandThatWaitAreNoMoreThanSoMany) {
  device_.is_held = true;
  for (int64_t n = 1; n <= 10'000; ++n) (void)want(n);
  const Specializer::Counts counts = specializer_->counts();
  // Beside those that threads have begun.
  EXPECT_LE(counts.waiting, Specializer::kMostWaiting + static_cast<size_t>(std::max(allowed_cpus() / 2, 1)));
  EXPECT_EQ(counts.sizes, counts.waiting);
  EXPECT_EQ(counts.dropped + counts.waiting, 10'000u);
  device_.is_held = false;
  const Kernels last = want(10'000);
  specializer_->wait(*last);
  EXPECT_EQ(number_of(last), 10'000);
  EXPECT_NE(want(5000), nullptr) << "begun again";
  EXPECT_EQ(number_of(wait_for(1)), 1);
}

TEST_F(SpecializerTest, WhatFailsIsReadyWithoutKernels) {
  device_.fails = true;
  const Kernels kernels = wait_for(7);
  EXPECT_TRUE(kernels->is_ready());
  EXPECT_EQ(number_of(kernels), -1);
  device_.fails = false;
  EXPECT_EQ(number_of(wait_for(7)), -1) << "no second try";
  EXPECT_EQ(number_of(wait_for(8)), 8);
  EXPECT_EQ(specializer_->counts().failed, 1u);
}

// Kernels that someone has outlive what the specializer keeps, and those of an application's graph are kept.
TEST_F(SpecializerTest, KernelsLiveAsLongAsTheyAreNeeded) {
  const Kernels held = wait_for(1);
  std::weak_ptr<const SpecializedKernels> kept, gone;
  {
    const Kernels for_graph = wait_for(2), other = wait_for(3);
    specializer_->keep(for_graph);
    kept = for_graph;
    gone = other;
  }
  for (int64_t n = 10; n < 10 + static_cast<int64_t>(Specializer::kMostSizes); ++n) (void)wait_for(n);
  EXPECT_EQ(number_of(held), 1);
  EXPECT_FALSE(kept.expired());
  EXPECT_TRUE(gone.expired());
}

TEST_F(SpecializerTest, ThreadsWantTheSameAndOtherSizes) {
  const auto work = [&](uint32_t seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 400; ++i) {
      const auto n = static_cast<int64_t>(1 + random() % 300);
      Kernels kernels = want(n);
      if (i % 3 == 0) specializer_->wait(*kernels);
      if (i % 50 == 0) specializer_->keep(kernels);
      EXPECT_TRUE(!kernels->is_ready() || number_of(kernels, i % 2) == n);
      (void)specializer_->counts();
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 6; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(specializer_->counts().failed, 0u);
}

TEST_F(SpecializerTest, ItGoesWhileKernelsAreMade) {
  device_.is_held = true;
  std::vector<Kernels> wanted;
  for (int64_t n = 1; n <= 50; ++n) wanted.push_back(want(n));
  while (device_.compiled == 0) std::this_thread::yield();
  std::thread later([&] { device_.is_held = false; });
  specializer_.reset();
  later.join();
  EXPECT_LT(device_.compiled, 50u) << "what waits is left out";
}

}  // namespace
}  // namespace lathe
