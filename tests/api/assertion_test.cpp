// SPDX-License-Identifier: Apache-2.0
// Assertions: what holds for all sizes of the profiles costs nothing, what holds for none fails the build, and the rest
// is checked when shapes are set.
#include <deque>
#include <functional>

#include "api/small_engine.h"

namespace nvinfer1 {
namespace {

class Assertion : public EngineTest {
 protected:
  ITensor& apply(ElementWiseOperation op, ITensor& a, ITensor& b) {
    return *network->addElementWise(a, b, op)->getOutput(0);
  }
  ITensor& negate(ITensor& a) { return *network->addUnary(a, UnaryOperation::kNOT)->getOutput(0); }
  ITensor& number(int64_t value) {
    numbers_.push_back(value);
    return *network->addConstant(Dims{1, {1}}, {DataType::kINT64, &numbers_.back(), 1})->getOutput(0);
  }
  // The dims of x, [n, 3], and the first of them.
  ITensor& sizes() { return *network->addShape(*network->getInput(0))->getOutput(0); }
  ITensor& n() { return *network->addSlice(sizes(), Dims{1, {0}}, Dims{1, {1}}, Dims{1, {1}})->getOutput(0); }
  ITensor& less(ITensor& a, ITensor& b) { return apply(ElementWiseOperation::kLESS, a, b); }
  ITensor& greater(ITensor& a, ITensor& b) { return apply(ElementWiseOperation::kGREATER, a, b); }
  ITensor& equal(ITensor& a, ITensor& b) { return apply(ElementWiseOperation::kEQUAL, a, b); }
  // n = 2 * floor(n / 2)
  ITensor& even() {
    ITensor& half = apply(ElementWiseOperation::kFLOOR_DIV, n(), number(2));
    return equal(apply(ElementWiseOperation::kPROD, half, number(2)), n());
  }
  void expect_no_plan(std::initializer_list<const char*> words) {
    EXPECT_EQ(std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config)), nullptr);
    ASSERT_EQ(logger.text.size(), 1u);
    for (const char* word : words) EXPECT_NE(logger.last().find(word), std::string::npos) << logger.last();
  }

  std::deque<int64_t> numbers_;
};

TEST_F(Assertion, IsALayerWithoutOutputs) {
  IAssertionLayer* layer = network->addAssertion(even(), "batches are even");
  ASSERT_NE(layer, nullptr);
  EXPECT_EQ(layer->getType(), LayerType::kASSERTION);
  EXPECT_EQ(layer->getNbInputs(), 1);
  EXPECT_EQ(layer->getNbOutputs(), 0);
  EXPECT_STREQ(layer->getMessage(), "batches are even");
  EXPECT_EQ(network->addAssertion(even(), nullptr), nullptr);
}

TEST_F(Assertion, AFalseOneFailsTheBuild) {
  network->addAssertion(greater(n(), number(100)), "many")->setName("Many");
  expect_no_plan({"LATHE-5004", "assertion 'Many' (\"many\")"});
}

TEST_F(Assertion, OneThatLeavesASizeBelowTheProfileFailsTheBuild) {
  network->addAssertion(equal(n(), number(4)), "four")->setName("Four");
  expect_no_plan({"LATHE-", "assertion 'Four' (\"four\")"});
}

TEST_F(Assertion, OneOfDataIsRefused) {
  ITensor& data = *network->getInput(0);
  network->addAssertion(less(data, data), "")->setName("OfData");
  expect_no_plan({"LATHE-2104", "'OfData'", "shape tensor"});
}

TEST_F(Assertion, OneOfNumbersIsRefused) {
  network->addAssertion(n(), "")->setName("OfNumbers");
  expect_no_plan({"LATHE-2102", "'OfNumbers'", "not bool"});
}

TEST_F(Assertion, WhatTheProfilesDoNotDecideIsCheckedWhenShapesAreSet) {
  struct Case {
    const char* name;
    std::function<ITensor&()> condition;
    std::function<bool(int64_t)> holds;
  };
  const auto op = [this](ElementWiseOperation how) {
    return [=, this](ITensor& a, ITensor& b) -> ITensor& { return apply(how, a, b); };
  };
  const auto both = op(ElementWiseOperation::kAND), either = op(ElementWiseOperation::kOR),
             one = op(ElementWiseOperation::kXOR);
  // All hold for 4, the opt size.
  const std::vector<Case> cases = {
      {"always", [&]() -> ITensor& { return less(n(), number(9)); }, [](int64_t) { return true; }},
      {"less", [&]() -> ITensor& { return less(n(), number(5)); }, [](int64_t n) { return n < 5; }},
      {"greater", [&]() -> ITensor& { return greater(n(), number(3)); }, [](int64_t n) { return n > 3; }},
      {"even", [&]() -> ITensor& { return even(); }, [](int64_t n) { return n % 2 == 0; }},
      {"not", [&]() -> ITensor& { return negate(greater(n(), number(4))); }, [](int64_t n) { return n <= 4; }},
      {"differs", [&]() -> ITensor& { return negate(equal(n(), number(5))); }, [](int64_t n) { return n != 5; }},
      {"and", [&]() -> ITensor& { return both(even(), greater(n(), number(3))); },
       [](int64_t n) { return n % 2 == 0 && n > 3; }},
      {"or", [&]() -> ITensor& { return either(even(), greater(n(), number(6))); },
       [](int64_t n) { return n % 2 == 0 || n > 6; }},
      {"xor", [&]() -> ITensor& { return one(even(), greater(n(), number(6))); },
       [](int64_t n) { return (n % 2 == 0) != (n > 6); }},
      {"same truth", [&]() -> ITensor& { return equal(even(), less(n(), number(6))); },
       [](int64_t n) { return (n % 2 == 0) == (n < 6); }},
      {"each of several", [&]() -> ITensor& { return greater(sizes(), number(2)); }, [](int64_t n) { return n > 2; }},
      {"cast",
       [&]() -> ITensor& {
         ITensor& rest = apply(ElementWiseOperation::kSUB, n(), number(7));
         return *network->addCast(rest, DataType::kBOOL)->getOutput(0);
       },
       [](int64_t n) { return n != 7; }},
      {"reshaped",
       [&]() -> ITensor& {
         IShuffleLayer* scalar = network->addShuffle(less(n(), number(5)));
         scalar->setReshapeDimensions(Dims{0, {}});
         return *network->addIdentity(*scalar->getOutput(0))->getOutput(0);
       },
       [](int64_t n) { return n < 5; }},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    network.reset(builder->createNetworkV2(0));
    config.reset(builder->createBuilderConfig());
    SetUp();
    IAssertionLayer* layer = network->addAssertion(each.condition(), "before");
    layer->setMessage("sizes fit");
    const auto plan = build();
    ASSERT_NE(plan, nullptr);
    const auto engine = load(*plan);
    const std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    std::vector<float> x(8 * 3, 1), y(8 * 2);
    ASSERT_TRUE(context->setTensorAddress("x", x.data()) && context->setTensorAddress("y", y.data()));
    for (int64_t n = 1; n <= 8; ++n) {
      logger.text.clear();
      const bool runs = context->setInputShape("x", Dims2(n, 3)) && context->inferShapes(0, nullptr) == 0 &&
                        context->enqueueV3(nullptr);
      EXPECT_EQ(runs, each.holds(n)) << n << " " << logger.last();
      EXPECT_EQ(logger.last().find("(\"sizes fit\")") != std::string::npos, !each.holds(n)) << logger.last();
    }
  }
}

}  // namespace
}  // namespace nvinfer1
