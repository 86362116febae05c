// SPDX-License-Identifier: Apache-2.0
// On a device whose kernels say how long they take.
#include "runtime/specialization_gain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "device/null/null_device.h"
#include "runtime/specializer.h"

namespace lathe {
namespace {

class TimedKernel final : public Kernel {
 public:
  explicit TimedKernel(double microseconds) : microseconds(microseconds) {}
  Result<size_t> prepare(const Operands& operands, int) const override {
    if (fails) return fail(ErrorCode::internal, "no");
    prepared = {operands.inputs.begin(), operands.inputs.end()};
    return 100;
  }
  Result<> enqueue(const Operands& operands, std::byte* workspace, Queue&) const override {
    inputs = {operands.inputs.begin(), operands.inputs.end()};
    outputs = {operands.outputs.begin(), operands.outputs.end()};
    symbols = {operands.symbols.begin(), operands.symbols.end()};
    if (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ++runs;
    last_microseconds = microseconds;
    last_workspace = workspace;
    is_zero = std::all_of(inputs[0].as<std::byte>(), inputs[0].as<std::byte>() + 4 * inputs[0].volume(),
                          [](std::byte byte) { return byte == std::byte{}; });
    return {};
  }
  double microseconds;
  bool fails = false;
  mutable std::vector<TensorArg> prepared, inputs, outputs;
  mutable std::vector<int64_t> symbols;
  mutable bool is_zero = false;
  static inline bool is_slow = false;
  static inline int64_t runs = 0;
  static inline double last_microseconds = 0;
  static inline std::byte* last_workspace = nullptr;
};

class TimingDevice : public null::NullDevice {
 public:
  // Runs are of one kernel.
  class Graph final : public CapturedGraph {
   public:
    explicit Graph(std::function<Result<>(Queue&)> work) : work_(std::move(work)) {}
    Result<> replay(Queue& queue) override { return work_(queue); }
    Result<> update(const std::function<Result<>(Queue&)>&) override { return fail(ErrorCode::internal, "not here"); }

   private:
    std::function<Result<>(Queue&)> work_;
  };

  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>& work) override {
    if (!has_graphs) return nullptr;
    ++captured;
    return std::make_unique<Graph>(work);
  }
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override {
    LATHE_ASSIGN(std::vector<double> times, time_of(queue, work, repeats));
    timed += repeats;
    return times;
  }
  Result<std::vector<double>> time_replays(Queue& queue, CapturedGraph& graph, int repeats) override {
    LATHE_ASSIGN(std::vector<double> times, time_of(
                                                queue, [&](Queue& q) { return graph.replay(q); }, repeats));
    replayed += repeats;
    return times;
  }
  bool has_graphs = false;
  int captured = 0, timed = 0, replayed = 0;

 private:
  // Most of the rounds are disturbed, where there are several.
  Result<std::vector<double>> time_of(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) {
    const int64_t before = TimedKernel::runs;
    LATHE_TRY(work(queue));
    const int64_t runs = TimedKernel::runs - before;
    const double own = static_cast<double>(runs) * TimedKernel::last_microseconds;
    const bool is_disturbed = runs > 1 && ++rounds_ % 8 < 6;
    std::vector<double> times(static_cast<size_t>(repeats), is_disturbed || repeats > 1 ? 2 * own : own);
    if (!is_disturbed) times.back() = own;
    return times;
  }
  int64_t rounds_ = 0;
};

class SpecializationGainTest : public testing::Test {
 protected:
  void SetUp() override {
    plan_.symbols = {{"n", SymbolSource::input_dim, 0, 0, {1, 1 << 30}}};
    plan_.tensors = {{"x", DType::f32, {Expr::symbol(0), 3}, {}, plan::StorageKind::binding, 0, 0},
                     {"y", DType::f32, {Expr::symbol(0)}, {}, plan::StorageKind::binding, 1, 0}};
    plan_.codes.resize(2);
    plan::Step& step = plan_.steps.emplace_back();
    step.inputs = {0, plan::kNoTensor};
    step.outputs = {1};
  }
  std::unique_ptr<SpecializationGain> gain() {
    return std::make_unique<SpecializationGain>(plan_, device_, [this](size_t) { return &open_; });
  }
  Result<SpecializationGain::Times> measure(SpecializationGain& gain, double microseconds, int64_t n = 5,
                                            uint32_t module = 1) {
    return gain.measure(0, TimedKernel(microseconds), std::array{module}, std::array{n},
                        [this](TurnOf work) { ++(work == TurnOf::driver ? driver_turns_ : pauses_); });
  }

  plan::Plan plan_;
  TimingDevice device_;
  TimedKernel open_{10};
  int driver_turns_ = 0, pauses_ = 0;  // that were waited for
};

// A trial is a set of sizes, of which each step is timed.
TEST_F(SpecializationGainTest, MostOfTheTrialsCount) {
  struct Trials {
    std::vector<double> microseconds;
    bool gains;
  };
  for (const Trials& trials : {Trials{{9, 9, 9}, true},
                               {{10, 10, 9, 9, 9}, true},
                               {{9, 9, 10, 10, 10}, false},
                               {{9.8, 9.8, 9.8}, false},
                               {{20, 20, 1, 20}, false}}) {
    const auto gain = this->gain();
    for (const double time : trials.microseconds) {
      EXPECT_FALSE(gain->is_decided());
      EXPECT_TRUE(gain->may_gain(1)) << "until it is decided";
      const auto times = measure(*gain, time);
      ASSERT_TRUE(times);
      EXPECT_EQ(times->open, 10);
      EXPECT_EQ(times->special, time);
      gain->note_run(*times);
    }
    EXPECT_TRUE(gain->is_decided());
    EXPECT_EQ(gain->may_any_gain(), trials.gains);
    EXPECT_EQ(gain->may_gain(1), trials.gains);
    EXPECT_EQ(gain->may_gain(0), trials.gains) << "a module that was not timed goes by the runs";
    const std::vector<std::byte> verdicts = gain->verdicts();
    ASSERT_TRUE(measure(*gain, trials.gains ? 20 : 1));
    gain->note_run({trials.gains ? 1.0 : 100.0, 10});
    EXPECT_EQ(gain->verdicts(), verdicts) << "it stays decided";
  }
}

// Runs and modules are decided at the same time, whatever either of them has been so far.
TEST_F(SpecializationGainTest, ModulesThatDoNotGainAreLeftOutOfRunsThatDo) {
  const auto gain = this->gain();
  const double runs[] = {50, 99, 50, 50}, second[] = {10, 10, 10, 9};
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(gain->is_decided());
    EXPECT_TRUE(gain->may_gain(0));
    EXPECT_TRUE(gain->may_gain(1));
    ASSERT_TRUE(measure(*gain, 5, 5, 0));
    ASSERT_TRUE(measure(*gain, second[i], 5, 1));
    gain->note_run({100, runs[i]});
  }
  EXPECT_TRUE(gain->is_decided());
  EXPECT_TRUE(gain->may_gain(0));
  EXPECT_FALSE(gain->may_gain(1));
}

// Each operand has memory of its own, of the sizes in question.
TEST_F(SpecializationGainTest, StepsRunOnZeros) {
  const auto gain = this->gain();
  ASSERT_TRUE(measure(*gain, 9, 7));
  ASSERT_EQ(open_.inputs.size(), 2u);
  EXPECT_EQ(open_.prepared.size(), 2u);
  EXPECT_EQ(open_.inputs[0].volume(), 21);
  EXPECT_EQ(open_.inputs[1].data, nullptr);
  EXPECT_EQ(open_.outputs[0].volume(), 7);
  EXPECT_EQ(open_.symbols, (std::vector<int64_t>{7}));
  EXPECT_TRUE(open_.is_zero);
  EXPECT_GE(open_.inputs[0].as<std::byte>(), TimedKernel::last_workspace + 100);
  EXPECT_GE(open_.outputs[0].as<float>(), open_.inputs[0].as<float>() + 21);
}

TEST_F(SpecializationGainTest, WhatCannotBeTimedMayGain) {
  const auto large = gain();
  const auto times = measure(*large, 20, 1 << 25);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().code, ErrorCode::out_of_memory);
  open_.fails = true;
  const auto failing = gain();
  EXPECT_FALSE(measure(*failing, 20));
  for (SpecializationGain* const gain : {large.get(), failing.get()}) {
    for (uint32_t i = 0; i < SpecializationGain::kMajority; ++i) {
      EXPECT_FALSE(gain->is_decided());
      gain->note_run({});  // of no step that could be timed
    }
    EXPECT_TRUE(gain->is_decided());
    EXPECT_TRUE(gain->may_gain(1));
  }
}

// Of a stand-in for a GPU, say, which computes on the host.
TEST_F(SpecializationGainTest, WhatTakesLongIsTimedOnce) {
  for (const bool has_graphs : {false, true})
    for (const bool is_slow : {false, true}) {
      TimedKernel::is_slow = is_slow;
      device_.has_graphs = has_graphs;
      device_.timed = device_.captured = device_.replayed = 0;
      const auto times = measure(*gain(), 9);
      TimedKernel::is_slow = false;
      ASSERT_TRUE(times);
      EXPECT_EQ(times->open, 10);
      EXPECT_EQ(times->special, 9);
      const int times_both = is_slow ? 2 : 60;
      EXPECT_EQ(device_.timed, has_graphs ? 0 : times_both);
      EXPECT_EQ(device_.replayed, has_graphs ? times_both : 0);
      EXPECT_EQ(device_.captured, has_graphs ? 2 : 0);
    }
}

// Runs wait while a driver makes a graph.
TEST_F(SpecializationGainTest, AGraphOfEachKernelIsReplayedInAllRounds) {
  device_.has_graphs = true;
  const auto times = measure(*gain(), 9);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->open, 10);
  EXPECT_EQ(times->special, 9);
  EXPECT_EQ(device_.captured, 2);
  EXPECT_EQ(device_.replayed, 60);
  EXPECT_EQ(device_.timed, 0);
  EXPECT_EQ(driver_turns_, 2) << "graphs are made behind a run's launch";
  EXPECT_EQ(pauses_, 7) << "runs go on behind the graphs, and behind each round";
}

// A fast kernel that is a small part of runs is not worth it.
TEST_F(SpecializationGainTest, RunsAsAWholeCount) {
  for (const double special : {90.0, 92.0, 99.0}) {
    const auto gain = this->gain();
    for (uint32_t i = 0; i < SpecializationGain::kMajority; ++i) {
      ASSERT_TRUE(measure(*gain, 5));
      EXPECT_TRUE(gain->may_any_gain());
      gain->note_run({100, special});
    }
    EXPECT_EQ(gain->may_any_gain(), special == 90);
    EXPECT_EQ(gain->may_gain(1), special == 90);
  }
}

TEST_F(SpecializationGainTest, WhatIsFoundIsTakenUpByOthers) {
  for (const double special : {50.0, 99.0}) {
    const auto gain = this->gain(), other = this->gain();
    for (uint32_t i = 0; i < SpecializationGain::kMajority; ++i) {
      EXPECT_TRUE(gain->verdicts().empty()) << "until it is decided";
      ASSERT_TRUE(measure(*gain, 5));
      gain->note_run({100, special});
    }
    const std::vector<std::byte> verdicts = gain->verdicts();
    for (const size_t at : {size_t{4}, verdicts.size() - 4}) {  // more gains than trials
      std::vector<std::byte> damaged = verdicts;
      damaged[at] = std::byte{0xff};
      other->take(damaged);
    }
    other->take({});
    other->take(std::span(verdicts).first(verdicts.size() - 1));
    EXPECT_FALSE(other->is_decided());
    other->take(verdicts);
    EXPECT_TRUE(other->is_decided());
    EXPECT_EQ(other->may_any_gain(), special == 50);
    EXPECT_EQ(other->may_gain(1), special == 50);
    EXPECT_EQ(other->verdicts(), verdicts);
  }
}

TEST_F(SpecializationGainTest, WithoutOpenKernelsNothingIsTimed) {
  const SpecializationGain gain(plan_, device_, nullptr);
  EXPECT_TRUE(gain.is_decided());
  EXPECT_TRUE(gain.may_gain(0));
}

// The same through a specializer, whose kernels all take as long as they are told.
class CompilingDevice final : public TimingDevice {
 public:
  Result<std::vector<std::byte>> specialize(const CodeImage&, std::span<const SourceFile>, const Launch&,
                                            std::span<const int64_t>) override {
    ++compiled;
    return std::vector<std::byte>(1);
  }
  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord&) override {
    return std::make_unique<TimedKernel>(microseconds);
  }
  std::atomic<int64_t> compiled = 0;
  double microseconds = 10;
};

class SpecializerGainTest : public SpecializationGainTest {
 protected:
  void SetUp() override {
    SpecializationGainTest::SetUp();
    Launch launch;
    launch.entry = "kernel";
    launch.code = 1;
    launch.args = {{LaunchArg::number, 0, Expr::symbol(0)}};
    plan_.steps[0].work = plan::DeviceLaunches{"kernel", "", {launch}, {}};
    static constexpr std::byte kText[1] = {};
    plan_.codes[1].images = {{CodeForm::source, "null", kText}};
    specializer_ = Specializer::create(plan_, compiling_, [this](size_t) { return &open_; });
  }
  std::shared_ptr<const SpecializedKernels> want(int64_t n, bool wants_all) {
    const auto kernels = specializer_->want(std::array{n}, {cache_, &null_log(), wants_all});
    if (kernels) specializer_->wait(*kernels);
    return kernels;
  }
  CompilingDevice compiling_;
  std::shared_ptr<KernelCache> cache_;  // null = the specializer's own
  std::unique_ptr<Specializer> specializer_;
};

TEST_F(SpecializerGainTest, WhatIsNoFasterIsNotMadeForOtherSizes) {
  for (int64_t n = 1; n < int64_t{SpecializationGain::kMajority}; ++n) EXPECT_FALSE(want(n, false)->is_empty()) << n;
  EXPECT_TRUE(want(SpecializationGain::kMajority, false)->is_empty()) << "it is known now";
  EXPECT_EQ(want(100, false), nullptr);
  EXPECT_EQ(want(1, false), nullptr) << "also where there is one";
  EXPECT_EQ(compiling_.compiled, SpecializationGain::kMajority);
  EXPECT_FALSE(want(SpecializationGain::kMajority, true)->is_empty()) << "whoever wants all gets it";
  EXPECT_FALSE(want(100, true)->is_empty());
  EXPECT_EQ(compiling_.compiled, SpecializationGain::kMajority + 1) << "code that was compiled is kept";
}

// By as many threads as there are, half as many as processors: trials leave the driver's turn to others in between.
TEST_F(SpecializerGainTest, SizesThatAreWantedAtOnceAreAllMade) {
  compiling_.has_graphs = true;
  compiling_.microseconds = 5;
  std::vector<std::shared_ptr<const SpecializedKernels>> kernels;
  for (int64_t n = 1; n <= 20; ++n) kernels.push_back(specializer_->want(std::array{n}, {nullptr, &null_log(), false}));
  for (const auto& each : kernels) {
    ASSERT_TRUE(each);
    while (!each->is_ready()) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // whoever waits has no pauses
    EXPECT_FALSE(each->is_empty());
  }
}

// A second process has the first one's cache.
TEST_F(SpecializerGainTest, ASecondStartTimesNothing) {
  for (const double microseconds : {10.0, 5.0}) {
    specializer_ = Specializer::create(plan_, compiling_, [this](size_t) { return &open_; });
    compiling_.microseconds = microseconds;
    compiling_.compiled = 0;
    cache_ = std::make_shared<KernelCache>("");
    for (int64_t n = 1; n <= int64_t{SpecializationGain::kMajority}; ++n) ASSERT_TRUE(want(n, false)) << n;
    const auto second = std::make_shared<KernelCache>("");
    ASSERT_TRUE(second->merge(cache_->serialize()));
    cache_ = second;
    specializer_ = Specializer::create(plan_, compiling_, [this](size_t) { return &open_; });
    compiling_.timed = 0;
    const bool gains = microseconds < 10;
    EXPECT_EQ(want(1, false) != nullptr, gains) << "its code is in the cache";
    EXPECT_EQ(want(100, false) != nullptr, gains);
    EXPECT_EQ(compiling_.timed, 0);
    EXPECT_EQ(compiling_.compiled, SpecializationGain::kMajority + (gains ? 1 : 0));
    EXPECT_TRUE(want(1, true)) << "whoever wants all gets it";
  }
}

TEST_F(SpecializerGainTest, WhatIsFasterIsMade) {
  compiling_.microseconds = 9;
  for (int64_t n = 1; n <= 20; ++n) EXPECT_FALSE(want(n, false)->is_empty()) << n;
  EXPECT_EQ(compiling_.compiled, 20);
}

}  // namespace
}  // namespace lathe
