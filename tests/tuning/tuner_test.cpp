// SPDX-License-Identifier: Apache-2.0
// What the tuner chooses, on a device whose kernels' times and faults the test sets.
#include "tuning/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "fixtures/warnings.h"

namespace lathe {
namespace {

using Times = std::map<std::string, double>;  // microseconds by kernel

struct IdleQueue final : Queue {
  Result<> begin() override { return {}; }
  void end() override {}
};

// Negates one dense operand; "wrong" kernels forget to. Kernels named for rounding round before that, and err in the
// first element, which is 0.5 and at a tie, or in the second, which is not. A second output is twice the first one;
// "half" kernels forget the factor.
class NegateKernel final : public Kernel {
 public:
  NegateKernel(std::string name, std::string& last) : name_(std::move(name)), last_(last) {}
  Result<size_t> prepare(const Operands&, int) const override { return 0; }
  Result<> enqueue(const Operands& operands, std::byte*, Queue&) const override {
    last_ = name_;
    const auto* from = reinterpret_cast<const float*>(operands.inputs[0].data);
    auto* to = reinterpret_cast<float*>(operands.outputs[0].data);
    const float sign = name_.starts_with("wrong") ? 1 : -1;
    const bool rounds = name_.starts_with("round");
    for (int64_t i = 0; i < operands.outputs[0].volume(); ++i)
      to[i] = sign * (rounds ? std::nearbyint(from[i]) : from[i]);
    if (name_ == "round up") to[0] = -1;
    if (name_ == "round too far") to[0] = -2;
    if (name_ == "round wrongly") to[1] -= 1;
    for (size_t k = 1; k < operands.outputs.size(); ++k) {
      auto* further = reinterpret_cast<float*>(operands.outputs[k].data);
      for (int64_t i = 0; i < operands.outputs[k].volume(); ++i) further[i] = name_ == "half" ? to[i] : 2 * to[i];
    }
    return {};
  }

 private:
  const std::string name_;
  std::string& last_;
};

class ScriptedDevice final : public Device {
 public:
  explicit ScriptedDevice(Times times) : times_(std::move(times)) {}
  int timed = 0;

  std::string_view name() const override { return "scripted"; }
  std::string target() const override { return "scripted"; }
  Target describe() const override { return {}; }
  std::string timing_key() const override { return "scripted"; }
  Result<> check_target(std::string_view) const override { return {}; }
  bool is_host() const override { return true; }
  Result<DeviceMemory> allocate(size_t) override { return DeviceMemory(); }
  Result<std::unique_ptr<Queue>> make_queue() override { return std::make_unique<IdleQueue>(); }
  Result<std::unique_ptr<Queue>> make_stream_queue(void*) override { return make_queue(); }
  Result<> upload(void* to, const void* from, size_t bytes, Queue&) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Result<> download(void* to, const void* from, size_t bytes, Queue& queue) override {
    return upload(to, from, bytes, queue);
  }
  Result<> copy(const RowsCopy& rows, Queue&) override {
    rows.run();
    return {};
  }
  Result<> wait(Queue&) override { return {}; }
  bool is_accessible(const void*) const override { return true; }
  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) override {
    if (record.kernel.starts_with("refused")) return fail(ErrorCode::launch_refused, "too large");
    return std::make_unique<NegateKernel>(std::string(record.kernel), last_);
  }
  Result<std::shared_ptr<const std::byte>> make_resident(std::span<const std::byte>,
                                                         std::shared_ptr<const void>) override {
    return nullptr;
  }
  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>&) override { return nullptr; }
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override {
    ++timed;
    LATHE_TRY(work(queue));
    return std::vector<double>(static_cast<size_t>(repeats), times_.at(last_));
  }

 private:
  Times times_;
  std::string last_;
};

// Sources that hold "spill" do not compile.
struct ScriptedCompiler final : Compiler {
  Result<std::vector<std::byte>> compile(std::string_view source) override {
    if (source.find("spill") != source.npos) return fail(ErrorCode::no_tactic, "it spills");
    return std::vector<std::byte>(source.size());
  }
};

// One tactic whose configurations are kernels, in the order of their predicted times.
class Negate final : public Tactic {
 public:
  explicit Negate(std::vector<std::string> kernels, bool compiled = false)
      : kernels_(std::move(kernels)), compiled_(compiled) {}
  std::string_view name() const override { return "negate"; }
  Matched match(const Problem& problem) const override {
    if (problem.outputs[0].opt_dims[0] > 1000) return lathe::refuse("more than 1000 rows");
    return std::make_unique<Negation>(kernels_, compiled_);
  }

 private:
  class Negation final : public Match {
   public:
    Negation(const std::vector<std::string>& kernels, bool compiled) : kernels_(kernels), compiled_(compiled) {}
    std::vector<Config> configs() const override {
      std::vector<Config> configs;
      for (const std::string& kernel : kernels_)
        configs.push_back({.text = kernel, .predicted_us = 1.0 + static_cast<double>(configs.size())});
      return configs;
    }
    Result<Emission> emit(const Config& config) const override {
      Emission emission;
      emission.kernel = config.text;
      emission.inputs = {{StepInput::operand, 0}};
      if (compiled_) emission.launches.push_back({config.text, {}});
      return emission;
    }

   private:
    const std::vector<std::string>& kernels_;
    bool compiled_;
  };

  std::vector<std::string> kernels_;
  bool compiled_;  // they are of device code
};

Result<Choice> choose_one(Tuner& tuner, const Problem& problem, const TacticList& tactics) {
  Matches matches(problem, tactics);
  Matches* problems[] = {&matches};
  LATHE_ASSIGN(std::vector<Choice> choices,
               tuner.choose(problems, [](std::string_view, double) { return Result<>(); }));
  return choices[0];
}

Problem negation(int64_t rows) {
  Operand operand;
  operand.opt_dims = {rows, 3};
  operand.opt_strides = {3, 1};
  operand.dims = to_shape(operand.opt_dims);
  operand.strides = to_shape(operand.opt_strides);
  Problem problem;
  problem.operands = problem.outputs = {operand};
  problem.program = *parse_program("in=1; r1=neg r0; out r1");
  return problem;
}

class TunerTest : public testing::Test {
 protected:
  Choice choose(const std::vector<std::string>& kernels, const Times& times, bool compiled = false) {
    device_ = std::make_shared<ScriptedDevice>(times);
    tactics_.push_back(std::make_unique<Negate>(kernels, compiled));
    Tuner tuner(options(compiled));
    const Result<Choice> choice = choose_one(tuner, problem_, {tactics_.back().get()});
    EXPECT_TRUE(choice);
    measured_ = tuner.measured();
    return *choice;
  }
  TunerOptions options(bool compiled) {
    TunerOptions options;
    options.device = device_;
    options.compiler = compiled ? &compiler_ : nullptr;
    options.budget_seconds = budget_;
    options.cache = &cache_;
    options.log = &log_;
    return options;
  }

  Problem problem_ = negation(5);
  std::shared_ptr<ScriptedDevice> device_;
  ScriptedCompiler compiler_;
  TimingCache cache_;
  Warnings log_;
  double budget_ = 60;
  int measured_ = 0;
  std::vector<std::unique_ptr<Tactic>> tactics_;  // that choices point to
};

// S59.
TEST_F(TunerTest, TheFastestWins) {
  for (const bool compiled : {false, true}) {
    cache_.clear();
    const Choice choice = choose({"slow", "fast"}, {{"slow", 9}, {"fast", 2}}, compiled);
    EXPECT_EQ(choice.config.text, "fast");
    EXPECT_EQ(choice.microseconds, 2);
    EXPECT_EQ(measured_, 1);
    EXPECT_TRUE(log_.lines.empty());
  }
}

// S161.
TEST_F(TunerTest, WrongResultsDoNotWin) {
  const Choice choice = choose({"wrong1", "right", "wrong2"}, {{"wrong1", 1}, {"wrong2", 2}, {"right", 3}});
  EXPECT_EQ(choice.config.text, "right");
  ASSERT_EQ(log_.lines.size(), 2u);
  EXPECT_NE(log_.lines[0].find("wrong1 is left out"), std::string::npos) << log_.lines[0];
  EXPECT_NE(log_.lines[0].find("its result differs from the plain evaluation"), std::string::npos) << log_.lines[0];
}

TEST_F(TunerTest, EachResultIsCompared) {
  problem_.outputs.push_back(problem_.outputs[0]);
  problem_.program = *parse_program("in=1; r1=neg r0; r2=add r1 r1; out r1 r2");
  EXPECT_EQ(choose({"half", "wrong", "right"}, {{"half", 1}, {"wrong", 2}, {"right", 3}}).config.text, "right");
  ASSERT_EQ(log_.lines.size(), 2u);
  EXPECT_NE(log_.lines[0].find("its result 1 differs"), std::string::npos) << log_.lines[0];
  EXPECT_NE(log_.lines[1].find("its result 0 differs"), std::string::npos) << log_.lines[1];
}

// Of two right kernels one may round a tie up and the other down; nothing else may differ by a whole number.
TEST_F(TunerTest, OnlyTiesMayBeRoundedToTheOtherSide) {
  std::vector<float> values(15, 3.2f);
  values[0] = 0.5f;
  const Tensor content = Tensor::from<float>({5, 3}, values);
  problem_.operands[0].constant = problem_.operands[0].weights = &content;
  problem_.program = *parse_program("in=1; r1=round r0; r2=neg r1; out r2");
  for (const char* right : {"round", "round up"}) {
    EXPECT_EQ(choose({right}, {{right, 1}}).config.text, right);
    cache_.clear();
  }
  EXPECT_TRUE(log_.lines.empty());
  for (const char* wrong : {"round too far", "round wrongly"})
    EXPECT_EQ(choose({wrong}, {{wrong, 1}}).tactic, nullptr) << wrong;
}

TEST_F(TunerTest, WhatCannotRunIsLeftOut) {
  EXPECT_EQ(choose({"refused", "right"}, {{"right", 3}}).config.text, "right");
  EXPECT_EQ(choose({"spill", "right"}, {{"spill", 1}, {"right", 3}}, true).config.text, "right");
  EXPECT_EQ(log_.lines.size(), 1u);  // the second was answered by the timing cache
}

TEST_F(TunerTest, NothingIsChosenWhenAllFail) {
  EXPECT_EQ(choose({"wrong"}, {{"wrong", 1}}).tactic, nullptr);
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(TunerTest, TheTimingCacheAnswers) {
  choose({"slow", "fast"}, {{"slow", 9}, {"fast", 2}});
  const Choice again = choose({"slow", "fast"}, {});
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.config.text, "fast");
  EXPECT_EQ(again.microseconds, 2);
  EXPECT_EQ(device_->timed, 0);
  EXPECT_EQ(choose({"other"}, {{"other", 4}}).config.text, "other");  // a configuration that is no more
}

TEST_F(TunerTest, WithoutTimeThePredictionDecides) {
  budget_ = 0;
  EXPECT_EQ(choose({"slow", "fast"}, {}).config.text, "slow");
  EXPECT_EQ(choose({"spill", "slow"}, {}, true).config.text, "slow");
  EXPECT_EQ(measured_, 0);
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(TunerTest, EachTacticMayWin) {
  Times times{{"other", 1}};
  std::vector<std::string> many;
  for (int i = 0; i < 20; ++i) times[many.emplace_back(fmt::format("k{}", i))] = 5;
  device_ = std::make_shared<ScriptedDevice>(times);
  const Negate first(many), second({"other"});
  Tuner tuner(options(false));
  const Choice choice = *choose_one(tuner, negation(5), {&first, &second});
  EXPECT_EQ(choice.tactic, &second);
  EXPECT_LT(device_->timed, 5 * 20);  // rounds of fewer kernels
}

TEST_F(TunerTest, NoMoreAreMeasuredThanMay) {
  device_ = std::make_shared<ScriptedDevice>(Times{{"fast", 1}, {"slow", 2}, {"other", 1}});
  const Negate first({"fast", "slow"}), second({"other"});
  for (const size_t most : {1, 2}) {
    TunerOptions limited = options(false);
    limited.most_finalists = most;
    cache_.clear();
    Tuner tuner(limited);
    EXPECT_EQ(choose_one(tuner, negation(5), {&first, &second})->finalists.size(), most);
  }
}

TEST_F(TunerTest, RefusalsAreReported) {
  device_ = std::make_shared<ScriptedDevice>(Times());
  const Negate tactic({"right"});
  Tuner tuner(options(false));
  const Choice choice = *choose_one(tuner, negation(2000), {&tactic});
  EXPECT_EQ(choice.tactic, nullptr);
  EXPECT_EQ(choice.refusals, std::vector<std::string>{"negate: more than 1000 rows"});
}

TEST_F(TunerTest, WhatMostStepsDoIsMeasuredFirst) {
  struct TimedProblems final : Log {
    void write(Severity, std::string_view line) override {
      if (line.starts_with("timing ")) lines.emplace_back(line.substr(7));
    }
    std::vector<std::string> lines;
  } log;
  device_ = std::make_shared<ScriptedDevice>(Times{{"right", 1}});
  const Negate tactic({"right"});
  TunerOptions options = this->options(false);
  options.log = &log;
  Tuner tuner(options);
  const TacticList tactics = {&tactic};
  Matches once(negation(5), tactics), twice(negation(6), tactics), again(negation(6), tactics);
  Matches* problems[] = {&once, &twice, &again};
  ASSERT_TRUE(tuner.choose(problems, [](std::string_view, double) { return Result<>(); }));
  EXPECT_EQ(log.lines, (std::vector{to_text(twice.problem()), to_text(once.problem())}));
}

TEST_F(TunerTest, ProblemsAreDecidedTogether) {
  device_ = std::make_shared<ScriptedDevice>(Times{{"slow", 9}, {"fast", 2}, {"wrong", 1}});
  const Negate tactic({"slow", "wrong", "fast"}, true);
  Tuner tuner(options(true));
  const TacticList tactics = {&tactic};
  Matches five(negation(5), tactics), six(negation(6), tactics), again(negation(5), tactics),
      large(negation(2000), tactics);
  Matches* problems[] = {&five, &six, &again, &large};
  std::vector<double> fractions;
  const auto note = [&](std::string_view, double fraction) {
    fractions.push_back(fraction);
    return Result<>();
  };
  const auto choices = tuner.choose(problems, note);
  ASSERT_TRUE(choices);
  ASSERT_EQ(choices->size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ((*choices)[i].config.text, "fast");
  EXPECT_EQ((*choices)[3].tactic, nullptr);
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_EQ(tuner.measured(), 2);
  const int timed = device_->timed;
  for (const int64_t rows : {5, 6}) EXPECT_EQ(choose_one(tuner, negation(rows), tactics)->config.text, "fast");
  EXPECT_EQ(device_->timed, timed);
}

// What problems are checked with is not held for all of them at once.
TEST_F(TunerTest, ManyProblemsAreCheckedInTurns) {
  device_ = std::make_shared<ScriptedDevice>(Times{{"fast", 2}, {"wrong", 1}});
  const Negate tactic({"wrong", "fast"});
  Tuner tuner(options(false));
  const TacticList tactics = {&tactic};
  std::vector<std::unique_ptr<Matches>> owned;
  std::vector<Matches*> problems;
  for (int64_t rows = 5; rows < 155; ++rows)
    problems.push_back(owned.emplace_back(std::make_unique<Matches>(negation(rows), tactics)).get());
  std::vector<double> fractions;
  const auto choices = tuner.choose(problems, [&](std::string_view, double fraction) {
    fractions.push_back(fraction);
    return Result<>();
  });
  ASSERT_TRUE(choices);
  EXPECT_EQ(tuner.measured(), 150);
  EXPECT_EQ(log_.lines.size(), 150u);  // of the wrong kernel, for each
  for (const Choice& choice : *choices) EXPECT_EQ(choice.config.text, "fast");
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
}

TEST_F(TunerTest, ProgressEndsTheWork) {
  device_ = std::make_shared<ScriptedDevice>(Times{{"right", 2}});
  const Negate tactic({"right"}, true);
  for (const std::string_view last : {"compiling kernels", "tuning", "checking kernels"}) {
    cache_.clear();
    Tuner tuner(options(true));
    const TacticList tactics = {&tactic};
    Matches matches(negation(5), tactics);
    Matches* problems[] = {&matches};
    const auto ended = tuner.choose(problems, [&](std::string_view phase, double) -> Result<> {
      if (phase == last) return fail(ErrorCode::cancelled, "enough");
      return {};
    });
    ASSERT_FALSE(ended) << last;
    EXPECT_EQ(ended.error().code, ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace lathe
