// SPDX-License-Identifier: Apache-2.0
// A row for every setter of the layers of loops and conditionals; x counts from -2.
#pragma once

#include "api/layers_world.h"

namespace nvinfer1::layers {

// Rows of a matrix, summed up and kept.
struct Sums {
  explicit Sums(Net& n) {
    ITensor& x = n.input(Dims2(2, 2));
    loop = n.network->addLoop();
    loop->addTripLimit(n.shaped(dims({}), {2}), TripLimit::kCOUNT);
    iterator = loop->addIterator(x);
    recurrence = loop->addRecurrence(n.constant(dims({2}), {0, 0}));
    ITensor& next =
        *n.network->addElementWise(*recurrence->getOutput(0), *iterator->getOutput(0), ElementWiseOperation::kSUM)
             ->getOutput(0);
    recurrence->setInput(1, next);
    all = loop->addLoopOutput(next, LoopOutput::kCONCATENATE);
    all->setInput(1, n.shaped(dims({}), {2}));
  }
  ILoop* loop;
  IIteratorLayer* iterator;
  IRecurrenceLayer* recurrence;
  ILoopOutputLayer* all;
};

inline void add_loops(Table& table) {
  const auto all = [](Net& n) { return Sums(n).all; };
  add<ILoopOutputLayer>(table, "ILoop", all,
                        {{"setName",
                          DOES(getLoop()->setName("a"), std::string(l.getLoop()->getName()) == "a"),
                          nullptr,
                          {CALL(getLoop()->setName(nullptr))}}});
  add<ILoopOutputLayer>(
      table, "ILoopOutputLayer", all,
      {{"setAxis",
        DOES(setAxis(1), l.getAxis() == 1),
        "f32[2, 2]: -2 -2 -1 0",
        {CALL(setAxis(2)), CALL(setAxis(-3)), CALL(setInput(1, *l.getInput(0))), CALL(setInput(2, *l.getInput(0)))}}});
}

// The network gives x; what an assertion says changes nothing of that.
inline void add_assertions(Table& table) {
  const auto assertion = [](Net& n) {
    ITensor& x = n.input(Dims2(1, 2));
    n.network->markOutput(*n.network->addIdentity(x)->getOutput(0));
    ITensor& sizes = *n.network->addShape(x)->getOutput(0);
    return n.network->addAssertion(
        *n.network->addElementWise(sizes, n.numbers({1, 2}), ElementWiseOperation::kEQUAL)->getOutput(0), "sizes");
  };
  add<IAssertionLayer>(table, "IAssertionLayer", assertion,
                       {{"setMessage",
                         DOES(setMessage("other"), std::string(l.getMessage()) == "other"),
                         nullptr,
                         {CALL(setMessage(nullptr))}}});
}

template <auto kSet, auto kShown>
bool set_iterator(Net& n, ILoopOutputLayer&) {
  auto* iterator = static_cast<IIteratorLayer*>(n.network->getLayer(2));
  EXPECT_EQ(iterator->getType(), LayerType::kITERATOR);
  kSet(n, *iterator);
  return kShown(*iterator);
}

template <int32_t kAxis>
void set_iterators_axis(Net& n, ILoopOutputLayer& l) {
  l.setName("not the culprit");
  n.network->getLayer(2)->setName("the layer");
  static_cast<IIteratorLayer*>(n.network->getLayer(2))->setAxis(kAxis);
}

// The slice of a loop's last round.
inline void add_iterators(Table& table) {
  add<ILoopOutputLayer>(table, "IIteratorLayer", [](Net& n) { return Sums(n).all; },
                        {{"setAxis",
                          set_iterator<CALL(setAxis(1)), [](auto& l) { return l.getAxis() == 1; }>,
                          "f32[2, 2]: -2 0 -3 1",
                          {set_iterators_axis<2>, set_iterators_axis<-3>}},
                         {"setReverse",
                          set_iterator<CALL(setReverse(true)), [](auto& l) { return l.getReverse(); }>,
                          "f32[2, 2]: 0 1 -2 0",
                          {}}});
}

inline void add_conditionals(Table& table) {
  add<IIfConditionalOutputLayer>(
      table, "IIfConditional",
      [](Net& n) {
        IIfConditional* conditional = n.network->addIfConditional();
        ITensor& x = n.input(dims({2}));
        conditional->setCondition(*n.network->addCast(n.shaped(dims({}), {1}), DataType::kBOOL)->getOutput(0));
        ITensor& inside = *conditional->addInput(x)->getOutput(0);
        ITensor& less = *n.network->addUnary(inside, UnaryOperation::kNEG)->getOutput(0);
        return conditional->addOutput(inside, less);
      },
      {{"setName",
        DOES(getConditional()->setName("a"), std::string(l.getConditional()->getName()) == "a"),
        nullptr,
        {CALL(getConditional()->setName(nullptr))}},
       {"setCondition",
        [](Net& n, IIfConditionalOutputLayer& l) {
          ITensor& no = *n.network->addCast(n.shaped(dims({}), {0}), DataType::kBOOL)->getOutput(0);
          IConditionLayer* layer = l.getConditional()->setCondition(no);
          return layer->getInput(0) == &no && layer->getConditional() == l.getConditional();
        },
        "f32[2]: 2 1",
        {[](Net&, IIfConditionalOutputLayer& l) {
           Net other;
           l.getConditional()->setCondition(other.input(dims({}), DataType::kBOOL));
         },
         [](Net& n, IIfConditionalOutputLayer& l) {
           ITensor& number = n.shaped(dims({}), {0});
           l.getConditional()->setCondition(number)->setName("the layer");
         }}}});
}

}  // namespace nvinfer1::layers
