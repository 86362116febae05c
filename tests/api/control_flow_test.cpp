// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals through the public interface, built and run.
#include <cstring>
#include <deque>

#include "api/network_fixture.h"

namespace nvinfer1 {
namespace {

using V = std::vector<float>;

class ControlFlow : public NetworkTest {
 protected:
  ITensor& input(const char* name, const Dims& dims, DataType type = DataType::kFLOAT) {
    return *network->addInput(name, type, dims);
  }
  ITensor& numbers(const Dims& dims, V values) {
    const V& kept = floats.emplace_back(std::move(values));
    return *network->addConstant(dims, {DataType::kFLOAT, kept.data(), static_cast<int64_t>(kept.size())})
                ->getOutput(0);
  }
  ITensor& integer(int32_t value) {
    integers.push_back(value);
    return *network->addConstant(Dims{0, {}}, {DataType::kINT32, &integers.back(), 1})->getOutput(0);
  }
  ITensor& apply(ElementWiseOperation op, ITensor& a, ITensor& b) {
    return *network->addElementWise(a, b, op)->getOutput(0);
  }
  ITensor& product(ITensor& a, ITensor& b) {
    return *network->addMatrixMultiply(a, MatrixOperation::kNONE, b, MatrixOperation::kNONE)->getOutput(0);
  }
  void profile(const char* name, const Dims& least, const Dims& most) { add_profile({{name, least, most, most}}); }
  template <class T>
  void set(const char* name, std::vector<T>& values) {
    EXPECT_TRUE(context->setTensorAddress(name, values.data())) << logger.last();
  }
  V run(const char* name, size_t count) {
    V values(count);
    set(name, values);
    EXPECT_TRUE(context->enqueueV3(nullptr)) << logger.last();
    return values;
  }

  std::deque<V> floats;
  std::deque<int32_t> integers;
};

// h' = tanh(x[t] + h w) over an open number of steps, which the trip count and the length come from.
TEST_F(ControlFlow, ARecurrentNetwork) {
  ITensor& x = input("x", Dims3(-1, 1, 2));
  IShapeLayer* shape = network->addShape(x);
  ISliceLayer* first = network->addSlice(*shape->getOutput(0), Dims{1, {0}}, Dims{1, {1}}, Dims{1, {1}});
  IShuffleLayer* steps = network->addShuffle(*first->getOutput(0));
  steps->setReshapeDimensions(Dims{0, {}});
  ILoop* loop = network->addLoop();
  loop->setName("steps");
  ITripLimitLayer* limit = loop->addTripLimit(*steps->getOutput(0), TripLimit::kCOUNT);
  ASSERT_NE(limit, nullptr) << logger.last();
  EXPECT_EQ(limit->getTripLimit(), TripLimit::kCOUNT);
  EXPECT_EQ(limit->getLoop(), loop);
  EXPECT_EQ(limit->getNbOutputs(), 0);
  IIteratorLayer* iterator = loop->addIterator(x);
  IRecurrenceLayer* h = loop->addRecurrence(numbers(Dims2(1, 2), {0, 0}));
  EXPECT_EQ(iterator->getOutput(0)->getDimensions().nbDims, 2);
  ITensor& weighed = product(*h->getOutput(0), numbers(Dims2(2, 2), {0.5f, -1, 1, 0.25f}));
  ITensor& sum = apply(ElementWiseOperation::kSUM, *iterator->getOutput(0), weighed);
  ITensor& next = *network->addActivation(sum, ActivationType::kTANH)->getOutput(0);
  h->setInput(1, next);
  ILoopOutputLayer* all = loop->addLoopOutput(next, LoopOutput::kCONCATENATE);
  all->setInput(1, *steps->getOutput(0));
  mark(all->getOutput(0), "all");
  mark(loop->addLoopOutput(*h->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0), "last");
  EXPECT_EQ(all->getOutput(0)->getDimensions().d[0], -1);
  profile("x", Dims3(1, 1, 2), Dims3(6, 1, 2));
  ASSERT_TRUE(make_context()) << logger.last();
  for (const int64_t n : {1, 4, 6}) {
    V x_values, want, state = {0, 0}, last(2);
    for (int64_t i = 0; i < 2 * n; ++i) x_values.push_back(0.3f * static_cast<float>(i % 5) - 0.5f);
    for (size_t t = 0; t < static_cast<size_t>(n); ++t) {
      const V before = state;
      state = {std::tanh(x_values[2 * t] + before[0] * 0.5f + before[1]),
               std::tanh(x_values[2 * t + 1] - before[0] + before[1] * 0.25f)};
      want.insert(want.end(), state.begin(), state.end());
    }
    ASSERT_TRUE(context->setInputShape("x", Dims3(n, 1, 2)));
    set("x", x_values);
    set("last", last);
    const V all_values = run("all", want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(all_values[i], want[i], 1e-5f) << i;
    EXPECT_NEAR(last[1], state[1], 1e-5f);
  }
}

// Powers of two below a limit, found by a condition, side by side in a result of a length of its own.
TEST_F(ControlFlow, ConditionsEndLoopsEarly) {
  ITensor& limit = input("limit", Dims{0, {}});
  ILoop* loop = network->addLoop();
  IRecurrenceLayer* power = loop->addRecurrence(numbers(Dims{0, {}}, {1}));
  ITensor& holds = apply(ElementWiseOperation::kLESS, *power->getOutput(0), limit);
  loop->addTripLimit(holds, TripLimit::kWHILE);
  loop->addTripLimit(integer(100), TripLimit::kCOUNT);
  power->setInput(1, apply(ElementWiseOperation::kSUM, *power->getOutput(0), *power->getOutput(0)));
  for (const auto& [kind, name] : {std::pair{LoopOutput::kCONCATENATE, "all"}, {LoopOutput::kREVERSE, "reversed"}}) {
    ILoopOutputLayer* all = loop->addLoopOutput(*power->getOutput(0), kind);
    all->setInput(1, integer(5));
    mark(all->getOutput(0), name);
  }
  mark(loop->addLoopOutput(*power->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0), "last");
  ASSERT_TRUE(make_context()) << logger.last();
  V most = {9}, reversed(5), last(1);
  set("limit", most);
  set("reversed", reversed);
  set("last", last);
  EXPECT_EQ(run("all", 5), (V{1, 2, 4, 8, 0}));
  EXPECT_EQ(reversed, (V{0, 8, 4, 2, 1}));
  EXPECT_EQ(last, V{16});
  most = {1000};
  EXPECT_EQ(run("all", 5), (V{1, 2, 4, 8, 16}));
  EXPECT_EQ(reversed, (V{16, 8, 4, 2, 1}));
  most = {0};
  EXPECT_EQ(run("all", 5), (V{0, 0, 0, 0, 0}));
  EXPECT_EQ(last, V{1});
}

// Only the taken side is computed: the other one is a loop that would not end for a long time.
TEST_F(ControlFlow, OneSideOfAConditionalIsComputed) {
  ITensor& x = input("x", Dims2(2, 2));
  ITensor& flag = input("flag", Dims{0, {}}, DataType::kBOOL);
  IIfConditional* conditional = network->addIfConditional();
  EXPECT_EQ(conditional->setCondition(flag)->getType(), LayerType::kCONDITION);
  ITensor& inside = *conditional->addInput(x)->getOutput(0);
  ILoop* loop = network->addLoop();
  IRecurrenceLayer* y = loop->addRecurrence(inside);
  loop->addTripLimit(integer(2000000000), TripLimit::kCOUNT);
  y->setInput(1, *network->addActivation(product(*y->getOutput(0), x), ActivationType::kTANH)->getOutput(0));
  ITensor& slow = *loop->addLoopOutput(*y->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
  IIfConditionalOutputLayer* output = conditional->addOutput(product(inside, x), slow);
  EXPECT_EQ(output->getNbInputs(), 2);
  EXPECT_EQ(output->getInput(2), nullptr);
  EXPECT_EQ(output->getConditional(), conditional);
  logger.text.clear();
  mark(output->getOutput(0), "y");
  ASSERT_TRUE(make_context()) << logger.last();
  V values = {1, 2, 3, 4};
  auto yes = std::make_unique<bool>(true);
  set("x", values);
  EXPECT_TRUE(context->setTensorAddress("flag", yes.get()));
  EXPECT_EQ(run("y", 4), (V{7, 10, 15, 22}));
}

// In each round the sum so far doubles or shrinks: a conditional within a loop, by a condition of the loop.
TEST_F(ControlFlow, ConditionalsInLoops) {
  ITensor& x = input("x", Dims2(4, 2));
  ILoop* loop = network->addLoop();
  loop->addTripLimit(integer(4), TripLimit::kCOUNT);
  ITensor& row = *loop->addIterator(x, 0, true)->getOutput(0);
  IRecurrenceLayer* sum = loop->addRecurrence(numbers(Dims{1, {2}}, {1, 1}));
  ITensor& lead = *network->addReduce(row, ReduceOperation::kSUM, 1, false)->getOutput(0);
  ITensor& is_less = apply(ElementWiseOperation::kLESS, lead, numbers(Dims{0, {}}, {0}));
  IIfConditional* conditional = network->addIfConditional();
  conditional->setCondition(is_less);
  ITensor& inside = *conditional->addInput(*sum->getOutput(0))->getOutput(0);
  IMatrixMultiplyLayer* mixed = network->addMatrixMultiply(inside, MatrixOperation::kVECTOR,
                                                           numbers(Dims2(2, 2), {0, 1, 1, 0}), MatrixOperation::kNONE);
  ITensor& both = apply(ElementWiseOperation::kSUM, inside, row);
  sum->setInput(1, *conditional->addOutput(*mixed->getOutput(0), both)->getOutput(0));
  mark(loop->addLoopOutput(*sum->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0), "y");
  ASSERT_TRUE(make_context()) << logger.last();
  V values = {1, 2, -3, 1, 5, 7, -1, 0};
  set("x", values);
  EXPECT_EQ(run("y", 2), (V{9, 8}));  // {1,1} -> swap -> {6,8} -> swap {8,6} -> {9,8}
}

TEST_F(ControlFlow, CarriedValuesMayGrow) {
  ITensor& x = input("x", Dims2(2, 3));
  ILoop* loop = network->addLoop();
  loop->addTripLimit(integer(3), TripLimit::kCOUNT);
  IRecurrenceLayer* all = loop->addRecurrence(x);
  ITensor* parts[] = {all->getOutput(0), &x};
  IConcatenationLayer* longer = network->addConcatenation(parts, 2);
  longer->setAxis(0);
  all->setInput(1, *longer->getOutput(0));
  ITensor& last = *loop->addLoopOutput(*all->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
  mark(network->addReduce(last, ReduceOperation::kSUM, 1, false)->getOutput(0), "y");
  EXPECT_EQ(all->getOutput(0)->getDimensions().d[0], -1);
  EXPECT_EQ(all->getOutput(0)->getDimensions().d[1], 3);
  ASSERT_TRUE(make_context()) << logger.last();
  V values = {1, 2, 3, 4, 5, 6};
  set("x", values);
  EXPECT_EQ(run("y", 3), (V{20, 28, 36}));
}

TEST_F(ControlFlow, ErrorsNameLoopAndLayer) {
  ITensor& x = input("x", Dims{1, {3}});
  ILoop* loop = network->addLoop();
  loop->setName("rounds");
  IRecurrenceLayer* y = loop->addRecurrence(x);
  y->setName("carried");
  ITensor& last = *loop->addLoopOutput(*y->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
  mark(&last, "y");
  const auto fails_by = [&](const std::string& reason) {
    EXPECT_FALSE(make_context()) << reason;
    EXPECT_NE(logger.last().find(reason), std::string::npos) << logger.last();
  };
  fails_by("loop 'rounds' has no trip limit");
  ITripLimitLayer* limit = loop->addTripLimit(x, TripLimit::kCOUNT);
  fails_by("kCOUNT takes an INT32 or INT64 without dimensions, but 'x' is f32[3]");
  limit->setInput(0, integer(2));
  fails_by("layer 'carried' of loop 'rounds' has no value for the next round");
  ITensor& next = *network->addUnary(*y->getOutput(0), UnaryOperation::kNEG)->getOutput(0);
  y->setInput(1, *network->addCast(next, DataType::kINT32)->getOutput(0));
  fails_by("the type and the number of dimensions must stay");
  y->setInput(1, next);
  EXPECT_TRUE(make_context()) << logger.last();
  EXPECT_EQ(loop->addTripLimit(integer(3), TripLimit::kCOUNT), nullptr);
  EXPECT_NE(logger.last().find("has a trip limit of this kind"), std::string::npos) << logger.last();
  EXPECT_EQ(loop->addTripLimit(integer(3), static_cast<TripLimit>(9)), nullptr);
  EXPECT_EQ(loop->addLoopOutput(x, static_cast<LoopOutput>(9)), nullptr);
  mark(&next, "inner");
  fails_by("but network output 'inner' outside of the loop reads it: add a loop output");
  network->unmarkOutput(next);
  IIfConditional* conditional = network->addIfConditional();
  conditional->setName("either");
  ITensor& chosen = *conditional->addOutput(x, x)->getOutput(0);
  mark(&chosen, "chosen");
  fails_by("conditional 'either' has no condition; call setCondition()");
  conditional->setCondition(*network->addCast(integer(1), DataType::kBOOL)->getOutput(0));
  EXPECT_TRUE(make_context()) << logger.last();
}

}  // namespace
}  // namespace nvinfer1
