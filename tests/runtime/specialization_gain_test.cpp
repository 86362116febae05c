// SPDX-License-Identifier: Apache-2.0
// On a device whose kernels say how long they take.
#include "runtime/specialization_gain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
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
  static inline int64_t runs = 0;
  static inline double last_microseconds = 0;
  static inline std::byte* last_workspace = nullptr;
};

class TimingDevice : public null::NullDevice {
 public:
  bool is_slow = false;
  int timed = 0;
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override {
    const int64_t before = TimedKernel::runs;
    LATHE_TRY(work(queue));
    const double own = static_cast<double>(TimedKernel::runs - before) * TimedKernel::last_microseconds;
    std::vector<double> times(static_cast<size_t>(repeats), 2 * own);  // disturbed
    times.back() = own;
    if (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    timed += repeats;
    return times;
  }
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
  static Result<SpecializationGain::Times> measure(SpecializationGain& gain, double microseconds, int64_t n = 5) {
    return gain.measure(0, TimedKernel(microseconds), std::array<uint32_t, 1>{1}, std::array{n});
  }

  plan::Plan plan_;
  TimingDevice device_;
  TimedKernel open_{10};
};

TEST_F(SpecializationGainTest, MostOfTheTrialsCount) {
  struct Trials {
    std::vector<double> microseconds;
    bool may_gain;
  };
  for (const Trials& trials : {Trials{{9, 9, 9, 10, 10}, true},
                               {{10, 10, 9, 9, 9}, true},
                               {{9, 9, 10, 10, 10}, false},
                               {{9.8, 9.8, 9.8, 9.8, 9.8}, false},
                               {{20, 20, 20, 20, 1}, false}}) {
    const auto gain = this->gain();
    for (const double time : trials.microseconds) {
      EXPECT_FALSE(gain->is_decided(1));
      EXPECT_TRUE(gain->may_gain(1)) << "until it is decided";
      const auto times = measure(*gain, time);
      ASSERT_TRUE(times);
      EXPECT_EQ(times->open, 10);
      EXPECT_EQ(times->special, time);
    }
    EXPECT_TRUE(gain->is_decided(1));
    EXPECT_EQ(gain->may_gain(1), trials.may_gain);
    EXPECT_TRUE(gain->may_gain(0)) << "another module's";
    ASSERT_TRUE(measure(*gain, 1));
    EXPECT_EQ(gain->may_gain(1), trials.may_gain) << "it stays decided";
  }
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
  EXPECT_TRUE(large->is_decided(1));
  EXPECT_TRUE(large->may_gain(1));
  open_.fails = true;
  const auto failing = gain();
  EXPECT_FALSE(measure(*failing, 20));
  EXPECT_TRUE(failing->is_decided(1));
  EXPECT_TRUE(failing->may_gain(1));
}

// Of a stand-in for a GPU, say, which computes on the host.
TEST_F(SpecializationGainTest, WhatTakesLongIsTimedOnce) {
  for (const bool is_slow : {false, true}) {
    device_.is_slow = is_slow;
    device_.timed = 0;
    const auto times = measure(*gain(), 9);
    ASSERT_TRUE(times);
    EXPECT_EQ(times->open, 10);
    EXPECT_EQ(times->special, 9);
    EXPECT_EQ(device_.timed, is_slow ? 4 : 64);
  }
}

// A fast kernel that is a small part of runs is not worth it.
TEST_F(SpecializationGainTest, RunsAsAWholeCount) {
  for (const double special : {90.0, 92.0, 99.0}) {
    const auto gain = this->gain();
    for (int i = 0; i < SpecializationGain::kTrials; ++i) {
      ASSERT_TRUE(measure(*gain, 5));
      EXPECT_TRUE(gain->may_any_gain());
      gain->note_run({100, special});
    }
    EXPECT_EQ(gain->may_any_gain(), special == 90);
    EXPECT_EQ(gain->may_gain(1), special == 90);
  }
}

TEST_F(SpecializationGainTest, WithoutOpenKernelsNothingIsTimed) {
  const SpecializationGain gain(plan_, device_, nullptr);
  EXPECT_TRUE(gain.is_decided(0));
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
    const auto kernels = specializer_->want(std::array{n}, {nullptr, &null_log(), wants_all});
    if (kernels) specializer_->wait(*kernels);
    return kernels;
  }
  CompilingDevice compiling_;
  std::unique_ptr<Specializer> specializer_;
};

TEST_F(SpecializerGainTest, WhatIsNoFasterIsNotMadeForOtherSizes) {
  for (int64_t n = 1; n < SpecializationGain::kTrials; ++n) EXPECT_FALSE(want(n, false)->is_empty()) << n;
  EXPECT_TRUE(want(SpecializationGain::kTrials, false)->is_empty()) << "it is known now";
  EXPECT_EQ(want(100, false), nullptr);
  EXPECT_EQ(want(1, false), nullptr) << "also where there is one";
  EXPECT_EQ(compiling_.compiled, SpecializationGain::kTrials);
  EXPECT_FALSE(want(SpecializationGain::kTrials, true)->is_empty()) << "whoever wants all gets it";
  EXPECT_FALSE(want(100, true)->is_empty());
  EXPECT_EQ(compiling_.compiled, SpecializationGain::kTrials + 1) << "code that was compiled is kept";
}

TEST_F(SpecializerGainTest, WhatIsFasterIsMade) {
  compiling_.microseconds = 9;
  for (int64_t n = 1; n <= 20; ++n) EXPECT_FALSE(want(n, false)->is_empty()) << n;
  EXPECT_EQ(compiling_.compiled, 20);
}

}  // namespace
}  // namespace lathe
