// SPDX-License-Identifier: Apache-2.0
// Kernels that are specialised for the sizes of runs: when they run, what is kept of them, and what goes wrong.
#include "device/cuda/specialization_fixture.h"

namespace lathe::cuda {
namespace {

size_t replays() {
  size_t count = 0;
  for (size_t i = 0; i < fake_cuda_calls(); ++i) count += std::string_view(fake_cuda_call(i)) == "cuGraphLaunch";
  return count;
}

constexpr int64_t kSizes[] = {7, 8, 9};
constexpr size_t kMostRuns = 10'000;  // until their graphs are ready; a millisecond each

// S187: the engine runs at once; what is made in the background runs from a later run on.
TEST_F(SpecializationTest, InTheBackgroundRunsGoOnMeanwhile) {
  hold();
  const auto context = make_context(Policy::background);
  for (const int64_t n : {7, 8, 7, 8, 7, 7, 7}) EXPECT_EQ(run(*context, n), kOpen);
  EXPECT_EQ(counts().sizes, 2u);
  EXPECT_EQ(counts().waiting, 2u);
  go();
  wait_for_all();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run(*context, 7), special(7)) << "the graph of the open kernel is not replayed";
  EXPECT_EQ(run(*context, 8), special(8));
  EXPECT_EQ(counts().made, 2u);
  EXPECT_TRUE(log_.taken().empty());
}

TEST_F(SpecializationTest, SizesThatComeOnceAskForNothing) {
  hold();
  const auto context = make_context(Policy::background);
  constexpr auto kKnown = static_cast<int64_t>(Specializer::kMostSizes);
  for (int64_t n = 1; n <= kKnown + 1; ++n) EXPECT_EQ(run(*context, n), kOpen);
  EXPECT_EQ(run(*context, 1), kOpen);
  EXPECT_EQ(counts().sizes, 0u) << "so many others came that it is not known any more";
  EXPECT_EQ(run(*context, 1), kOpen);
  EXPECT_EQ(counts().sizes, 1u);
  EXPECT_EQ(run(*context, kKnown), kOpen);
  EXPECT_EQ(counts().sizes, 2u);
  ASSERT_OK(context->set_input_dims(0, std::array<int64_t, 1>{kMost}));
  ASSERT_OK(context->memory_bytes());
  EXPECT_EQ(run(*context, kMost), kOpen);
  EXPECT_EQ(counts().sizes, 2u) << "its first run";
}

// Compilers would hold up runs that are launched step by step until their graphs are ready.
TEST_F(SpecializationTest, WithGraphsOfEachRunSizesThatHaveOneAsk) {
  hold();
  const auto context = make_context(Policy::background);
  context->set_graphs(GraphPolicy::of_each_run);
  for (size_t i = 0; i < kMostRuns && counts().sizes < 3; ++i) {
    const size_t sizes = counts().sizes, before = replays();
    EXPECT_EQ(run(*context, kSizes[i % 3]), kOpen);
    EXPECT_TRUE(counts().sizes == sizes || replays() > before) << i;
    EXPECT_TRUE(counts().sizes == 0 || i >= 6) << i;
    ::usleep(1000);
  }
  ASSERT_EQ(counts().sizes, 3u);
  EXPECT_EQ(run(*context, 10), kOpen);
  const size_t before = replays();
  EXPECT_EQ(run(*context, 10), kOpen);
  EXPECT_EQ(replays(), before);
  EXPECT_EQ(counts().sizes, 3u) << "it has no graph yet";
}

// Nor is there one to wait for where runs are looked at, say.
TEST_F(SpecializationTest, RunsThatHaveNoGraphsAskWhenTheyComeAgain) {
  hold();
  const auto context = make_context(Policy::background);
  context->set_graphs(GraphPolicy::of_each_run);
  context->hooks.profiler = [](const plan::Step&, double) {};
  EXPECT_EQ(run(*context, 7), kOpen);
  EXPECT_EQ(counts().sizes, 0u);
  EXPECT_EQ(run(*context, 7), kOpen);
  EXPECT_EQ(counts().sizes, 1u);
}

TEST_F(SpecializationTest, RunsThatHaveNoGraphsLeaveOthersWaiting) {
  hold();
  const auto context = make_context(Policy::none);
  context->set_graphs(GraphPolicy::of_each_run);
  size_t in_a_row = 0;
  for (size_t i = 0; i < kMostRuns && in_a_row < 3; ++i) {
    const size_t before = replays();
    EXPECT_EQ(run(*context, kSizes[i % 3]), kOpen);
    in_a_row = replays() > before ? in_a_row + 1 : 0;
    ::usleep(1000);
  }
  ASSERT_EQ(in_a_row, 3u);
  context->set_specialization(Policy::background, {nullptr, &log_});
  EXPECT_EQ(run(*context, 10), kOpen) << "three replays are awaited from here on";
  EXPECT_TRUE(device_->capture([&](Queue& queue) { return context->enqueue(device_->native_stream(queue)); }));
  context->hooks.profiler = [](const plan::Step&, double) {};
  EXPECT_EQ(run(*context, 7), kOpen);
  context->hooks.profiler = nullptr;
  EXPECT_EQ(counts().sizes, 1u) << "which was looked at";
  for (const int64_t n : {7, 8}) {
    EXPECT_EQ(run(*context, n), kOpen);
    EXPECT_EQ(counts().sizes, 1u);
  }
  EXPECT_EQ(run(*context, 9), kOpen);
  EXPECT_EQ(counts().sizes, 2u);
}

TEST_F(SpecializationTest, EagerRunsWaitForTheirs) {
  const auto context = make_context(Policy::at_once);
  ASSERT_OK(context->set_input_dims(0, std::array<int64_t, 1>{7}));
  ASSERT_OK(context->memory_bytes());
  for (const int64_t n : {7, 9, 7}) EXPECT_EQ(run(*context, n), special(n));
  EXPECT_EQ(counts().made, 2u);
}

TEST_F(SpecializationTest, NothingUnlessItIsAskedFor) {
  const auto context = make_context(Policy::none);
  for (const int64_t n : {7, 9, 7}) EXPECT_EQ(run(*context, n), kOpen);
  EXPECT_EQ(counts().sizes, 0u);
}

// What has no source in the plan, or no open sizes, has nothing to specialise.
TEST_F(SpecializationTest, StaticEnginesHaveNone) {
  const plan::Plan& open = engine_->plan();
  plan::Plan fixed = open;
  std::get<plan::DeviceLaunches>(fixed.steps[0].work).launches[0].args[3].value = Expr(7);
  EXPECT_EQ(Specializer::create(fixed, *device_), nullptr);
  plan::Plan bare = open;
  bare.codes[0].images.resize(1);
  EXPECT_EQ(Specializer::create(bare, *device_), nullptr);
  plan::Plan found_in_runs = open;
  found_in_runs.symbols[0].source = SymbolSource::computed;
  EXPECT_EQ(Specializer::create(found_in_runs, *device_), nullptr);
}

// All contexts of an engine have the same kernels.
TEST_F(SpecializationTest, ContextsShareThem) {
  const auto first = make_context(Policy::at_once);
  EXPECT_EQ(run(*first, 7), special(7));
  const auto second = make_context(Policy::background), third = make_context(Policy::none);
  EXPECT_EQ(run(*second, 7), special(7)) << "they are there";
  EXPECT_EQ(run(*third, 7), kOpen);
  EXPECT_EQ(counts().made, 1u);
}

// S187, S224: a second start compiles nothing, and needs no compiler.
TEST_F(SpecializationTest, ASecondStartCompilesNothing) {
  std::vector<std::byte> kept;
  for (const bool is_first : {true, false}) {
    const auto cache = std::make_shared<KernelCache>("environment");
    if (!is_first) {
      ASSERT_OK(cache->merge(kept));
      setenv("LATHE_COMPILER", "/nowhere/lathe-compiler", 1);
      engine_.reset();
      releaseIdleDevices();
      load(kSource);
    }
    const auto context = make_context(Policy::at_once, cache);
    for (const int64_t n : {7, 9}) EXPECT_EQ(run(*context, n), special(n));
    EXPECT_EQ(cache->counts().compiled, is_first ? 2u : 0u);
    EXPECT_EQ(cache->counts().hits, is_first ? 0u : 2u);
    kept = cache->serialize();
  }
  EXPECT_TRUE(log_.taken().empty());
}

// Where nothing has to be compiled there is nothing to put off.
TEST_F(SpecializationTest, ASecondStartPutsNothingOff) {
  const auto cache = std::make_shared<KernelCache>("environment");
  EXPECT_EQ(run(*make_context(Policy::at_once, cache), 7), special(7));
  setenv("LATHE_COMPILER", "/nowhere/lathe-compiler", 1);
  engine_.reset();
  releaseIdleDevices();
  load(kSource);
  const auto context = make_context(Policy::background, cache);
  context->set_graphs(GraphPolicy::of_each_run);
  EXPECT_EQ(run(*context, 9), kOpen);
  EXPECT_EQ(counts().sizes, 0u) << "it is not in the cache";
  ASSERT_OK(context->set_input_dims(0, std::array<int64_t, 1>{7}));
  ASSERT_OK(context->memory_bytes());
  EXPECT_EQ(counts().sizes, 1u);
  wait_for_all();
  EXPECT_EQ(run(*context, 7), special(7));
  EXPECT_EQ(cache->counts().compiled, 1u);
  EXPECT_TRUE(log_.taken().empty());
}

// What was made for another context goes into a context's own cache, too.
TEST_F(SpecializationTest, EachCacheGetsThem) {
  const auto without = make_context(Policy::at_once);
  EXPECT_EQ(run(*without, 7), special(7));
  const auto cache = std::make_shared<KernelCache>("environment");
  const auto with = make_context(Policy::background, cache);
  EXPECT_EQ(run(*with, 7), special(7));
  EXPECT_EQ(cache->counts().kernels, 1u);
  EXPECT_EQ(cache->counts().compiled, 0u);
}

TEST_F(SpecializationTest, CachesOfContextsGoWithThem) {
  const auto first = make_context(Policy::at_once);
  EXPECT_EQ(run(*first, 7), special(7));
  std::weak_ptr<KernelCache> gone;
  {
    const auto cache = std::make_shared<KernelCache>("environment");
    gone = cache;
    EXPECT_EQ(run(*make_context(Policy::background, cache), 7), special(7));
    EXPECT_EQ(cache->counts().kernels, 1u);
  }
  EXPECT_TRUE(gone.expired());
}

// Of more sizes than are kept, those that were not wanted for longest go, and are made again.
TEST_F(SpecializationTest, TheOldestGo) {
  const auto cache = std::make_shared<KernelCache>("environment");
  const auto context = make_context(Policy::at_once, cache);
  const auto other = make_context(Policy::at_once, cache);
  EXPECT_EQ(run(*other, 1), special(1));
  // So that nothing is compiled: code is the same where only the count of kernels matters.
  const OpenSteps steps(engine_->plan(), *device_);
  const DeviceCode code = *cache->find_code(steps.key(0, std::array<int64_t, 1>{special(1)}));
  for (int64_t n = 2; n <= kMost; ++n) cache->put(steps.key(0, std::array{special(n)}), code);
  constexpr auto kKept = static_cast<int64_t>(Specializer::kMostSizes);
  for (int64_t n = 2; n <= kKept; ++n) EXPECT_EQ(run(*context, n), special(1));
  EXPECT_EQ(counts().evicted, 0u);
  EXPECT_EQ(run(*other, 2), special(1));
  EXPECT_EQ(run(*other, 1), special(1)) << "wanted last";
  EXPECT_EQ(run(*context, kKept + 1), special(1));
  EXPECT_EQ(counts().evicted, 1u);
  EXPECT_EQ(run(*other, 1), special(1)) << "still there";
  EXPECT_EQ(counts().evicted, 1u);
  EXPECT_EQ(counts().sizes, Specializer::kMostSizes);
  EXPECT_EQ(run(*context, 3), special(1)) << "made again";
  EXPECT_EQ(counts().evicted, 2u);
  EXPECT_EQ(cache->counts().compiled, 1u);
}

// Of more sizes than may wait, those that have waited longest are dropped, and begun again if they still matter.
TEST_F(SpecializationTest, NoMoreThanSoManyWait) {
  setenv("FAKE_NVRTC_FAULT", "exit:lathe_kernel", 1);  // soon done with them
  hold();
  const auto still = make_context(Policy::background), changing = make_context(Policy::background);
  run_twice(*still, 1);
  for (int64_t n = 2; n <= 80; ++n) run_twice(*changing, n);
  EXPECT_GT(counts().dropped, 0u);
  EXPECT_LE(counts().waiting, Specializer::kMostWaiting + 8) << "and those that are being compiled";
  EXPECT_EQ(run(*still, 1), kOpen);
  go();
  wait_for_all();
  EXPECT_EQ(run(*still, 1), kOpen);
}

// What goes wrong in the background is one warning, and the open kernels go on.
TEST_F(SpecializationTest, WithoutACompilerThereIsOneWarning) {
  setenv("LATHE_COMPILER", "/nowhere/lathe-compiler", 1);
  releaseIdleDevices();
  const auto context = make_context(Policy::background);
  for (const int64_t n : {7, 8, 7}) EXPECT_EQ(run(*context, n), kOpen);
  wait_for_all();
  const auto eager = make_context(Policy::at_once);
  for (const int64_t n : {7, 8, 9}) EXPECT_EQ(run(*eager, n), kOpen);
  const std::vector<std::string> warnings = log_.taken();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(
      warnings[0].find("there is no compiler that could specialise kernels for the sizes of runs, so that kernels "
                       "for open sizes go on: "),
      std::string::npos)
      << warnings[0];
  EXPECT_NE(warnings[0].find("/nowhere/lathe-compiler"), std::string::npos) << warnings[0];
}

TEST_F(SpecializationTest, SourceThatDoesNotCompileIsOneWarning) {
  load("void lathe_kernel(a, b, c, d) { nonsense");
  const auto context = make_context(Policy::at_once);
  for (const int64_t n : {7, 8, 7}) EXPECT_EQ(run(*context, n), kOpen);
  EXPECT_EQ(counts().failed, 2u) << "which is not tried again for the same sizes";
  load("nothing");
  const auto other = make_context(Policy::at_once);
  EXPECT_EQ(run(*other, 7), kOpen);
  const std::vector<std::string> warnings = log_.taken();
  ASSERT_EQ(warnings.size(), 2u) << "one of each engine";
  EXPECT_NE(warnings[0].find("a kernel could not be specialised"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("the source has no kernel 'lathe_kernel'"), std::string::npos) << warnings[1];
}

TEST_F(SpecializationTest, ACompilerThatCrashesIsOneWarning) {
  for (const char* fault : {"crash:lathe_kernel", "exit:lathe_kernel"}) {
    setenv("FAKE_NVRTC_FAULT", fault, 1);
    releaseIdleDevices();
    load(kSource);
    const auto context = make_context(Policy::at_once);
    for (const int64_t n : {7, 8, 9}) EXPECT_EQ(run(*context, n), kOpen) << fault;
    EXPECT_EQ(log_.taken().size(), 1u) << fault;
    unsetenv("FAKE_NVRTC_FAULT");
    releaseIdleDevices();
    EXPECT_EQ(run(*context, 10), special(10)) << "the next ones are well";
  }
}

// The tuner refuses kernels that spill registers, and so does this; that is no fault.
TEST_F(SpecializationTest, KernelsThatWouldSpillStayOpen) {
  setenv("FAKE_NVRTC_FAULT", "log:lathe_kernel", 1);
  releaseIdleDevices();
  load(kSource);
  const auto context = make_context(Policy::at_once);
  EXPECT_EQ(run(*context, 7), kOpen);
  EXPECT_EQ(counts().failed, 1u);
  EXPECT_TRUE(log_.taken().empty());
}

TEST_F(SpecializationTest, CodeThatTheDeviceRefusesStaysOpen) {
  fake_cuda_fail("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
  const auto context = make_context(Policy::at_once);
  EXPECT_EQ(run(*context, 7), kOpen);
  EXPECT_EQ(run(*context, 8), special(8));
}

// Nothing is loaded beside it.
TEST_F(SpecializationTest, AnApplicationsCaptureAsksForNothing) {
  hold();
  const auto context = make_context(Policy::background);
  EXPECT_EQ(run(*context, 7), kOpen);
  EXPECT_TRUE(device_->capture([&](Queue& queue) { return context->enqueue(device_->native_stream(queue)); }));
  EXPECT_EQ(counts().sizes, 0u);
  EXPECT_EQ(run(*context, 7), kOpen);
  EXPECT_EQ(counts().sizes, 1u);
}

TEST_F(SpecializationTest, AnApplicationsCaptureLoadsNothing) {
  const auto cache = std::make_shared<KernelCache>("environment");
  EXPECT_EQ(run(*make_context(Policy::at_once, cache), 7), special(7));
  for (const Policy policy : {Policy::background, Policy::at_once}) {
    engine_.reset();
    load(kSource);
    const auto context = make_context(policy, cache);
    EXPECT_TRUE(device_->capture([&](Queue& queue) -> Result<> {
      LATHE_TRY(context->set_input_dims(0, std::array<int64_t, 1>{7}));
      return context->enqueue(device_->native_stream(queue));
    }));
    EXPECT_EQ(counts().sizes, 0u) << "though its code is all there";
    run(*context, 8);
    run(*context, 7);
    wait_for_all();
    EXPECT_EQ(run(*context, 7), special(7));
  }
}

// An application's capture takes the kernels that there are, waits for none, and its graph keeps
// them.
TEST_F(SpecializationTest, AnApplicationsGraphKeepsItsKernels) {
  const auto cache = std::make_shared<KernelCache>("environment");
  hold();
  const auto context = make_context(Policy::at_once, cache);
  const auto capture = [&] {
    EXPECT_TRUE(context->is_capturable().value());
    auto graph = device_->capture([&](Queue& queue) { return context->enqueue(device_->native_stream(queue)); });
    EXPECT_TRUE(graph) << graph.error().message;
    return *std::move(graph);
  };
  const auto queue = *device_->make_queue();
  const auto replay = [&](CapturedGraph& graph) {
    auto& result = *reinterpret_cast<int64_t*>(context->address(1));
    result = 0;
    const auto turn = QueueTurn::take(*queue);
    EXPECT_TRUE(graph.replay(*queue));
    EXPECT_TRUE(device_->wait(*queue));
    return result;
  };
  ASSERT_TRUE(context->set_input_dims(0, std::array<int64_t, 1>{7}));
  const auto open = capture();
  EXPECT_EQ(replay(*open), kOpen);
  go();
  EXPECT_EQ(run(*context, 7), special(7));
  EXPECT_EQ(replay(*open), kOpen) << "it holds what was captured";
  const auto special_graph = capture();
  EXPECT_EQ(replay(*special_graph), special(7));
  // Until those for 7 are let go of.
  const OpenSteps steps(engine_->plan(), *device_);
  const DeviceCode code = *cache->find_code(steps.key(0, std::array<int64_t, 1>{special(7)}));
  for (int64_t n = 8; n <= kMost; ++n) cache->put(steps.key(0, std::array{special(n)}), code);
  for (int64_t n = 8; counts().evicted == 0; ++n) (void)run(*context, n);
  EXPECT_EQ(replay(*special_graph), special(7));
  EXPECT_EQ(replay(*open), kOpen);
}

}  // namespace
}  // namespace lathe::cuda
