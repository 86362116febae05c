// SPDX-License-Identifier: Apache-2.0
// The rules of validate() for blocks, as in validate_test.cpp.
#include <gtest/gtest.h>

#include <functional>

#include "plan/blocks.h"
#include "plan/limits.h"
#include "plan/validate.h"

namespace lathe::plan {
namespace {

// A plan of one block, and what the test changes in it: x and y of [4], a truth value and a number.
class BlockPlan {
 public:
  explicit BlockPlan(BlockKind kind) {
    plan.target = "cpu";
    plan.profiles.emplace_back();
    x = add(StorageKind::binding, 0);
    y = add(StorageKind::binding, 1);
    plan.bindings = {{"x", true, x, false, {}}, {"y", false, y, false, {}}};
    weights.resize(128);
    plan.constants = {{"condition", 0, 1, {}}, {"trips", 64, 8, {}}};
    plan.weights = weights;
    condition = add(StorageKind::constant, 0, DType::boolean, {});
    trips = add(StorageKind::constant, 1, DType::i64, {});
    a = add_buffer();
    b = add_buffer();
    Step block;
    block.name = "block";
    block.outputs = {y};
    Block work;
    work.kind = kind;
    if (kind == BlockKind::loop) {
      block.inputs = {trips, kNoTensor, x};
      work.carried = 1;
      work.bodies = {{1, {kNoTensor, kNoTensor, a}, {kNoTensor, b}}};
    } else if (kind == BlockKind::branch) {
      block.inputs = {condition};
      work.bodies = {{1, {}, {y}}, {1, {}, {b}}};
    } else {
      block.inputs = {x};
      work.bodies = {{1, {a}, {b}}};
    }
    block.work = work;
    plan.steps.push_back(block);
    const TensorId from = kind == BlockKind::branch ? x : a;
    if (kind == BlockKind::branch) add_copy(from, y);
    add_copy(from, b);
    for (Buffer& buffer : plan.buffers) buffer.last = static_cast<uint32_t>(plan.steps.size() - 1);
  }

  Step& step() { return plan.steps[0]; }
  Block& block() { return std::get<Block>(plan.steps[0].work); }
  Body& body() { return block().bodies[0]; }
  TensorId add(StorageKind storage, uint32_t index, DType dtype = DType::f32, Shape dims = {4}) {
    plan.tensors.push_back({"t", dtype, std::move(dims), {}, storage, index, 0});
    return static_cast<TensorId>(plan.tensors.size() - 1);
  }
  TensorId add_buffer(DType dtype = DType::f32, Shape dims = {4}) {
    plan.buffers.push_back({64, 0, 0});
    return add(StorageKind::arena, static_cast<uint32_t>(plan.buffers.size() - 1), dtype, std::move(dims));
  }
  void add_copy(TensorId from, TensorId to) {
    Step step;
    step.work = Copy();
    step.inputs = {from};
    step.outputs = {to};
    plan.steps.push_back(step);
  }

  std::vector<std::byte> weights;
  Plan plan;
  TensorId x, y, condition, trips, a, b;
};

struct BlockDamage {
  BlockKind kind;
  const char* expected;
  std::function<void(BlockPlan&)> apply;
};

void expect_refusals(const std::vector<BlockDamage>& all) {
  for (const BlockDamage& damage : all) {
    BlockPlan damaged(damage.kind);
    damage.apply(damaged);
    const auto result = validate(damaged.plan);
    ASSERT_FALSE(result) << damage.expected;
    EXPECT_NE(result.error().message.find(damage.expected), std::string::npos) << result.error().to_string();
  }
}

TEST(PlanValidate, EachRuleOfBlocksRefuses) {
  using enum BlockKind;
  for (const BlockKind kind : {loop, branch, call}) {
    BlockPlan whole(kind);
    ASSERT_TRUE(validate(whole.plan)) << validate(whole.plan).error().to_string();
  }
  expect_refusals({
      {loop, "2 bodies", [](BlockPlan& p) { p.block().bodies.resize(2); }},
      {branch, "1 bodies", [](BlockPlan& p) { p.block().bodies.pop_back(); }},
      {call, "0 bodies", [](BlockPlan& p) { p.block().bodies.clear(); }},
      {branch, "carries values", [](BlockPlan& p) { p.block().carried = 1; }},
      {call, "carries values",
       [](BlockPlan& p) {
         p.block().stacked = {{0, false}};
       }},
      {loop, "2 steps, and 1 follow", [](BlockPlan& p) { p.body().steps = 2; }},
      {branch, "steps, and 1 follow", [](BlockPlan& p) { p.block().bodies[1].steps = UINT32_MAX; }},
      {loop, "with 2 inputs, not 3", [](BlockPlan& p) { p.step().inputs.pop_back(); }},
      {loop, "with 2 params, not 3", [](BlockPlan& p) { p.body().params.pop_back(); }},
      {loop, "with 1 results, not 2", [](BlockPlan& p) { p.body().results.pop_back(); }},
      {loop, "with 0 outputs, not 1", [](BlockPlan& p) { p.step().outputs.clear(); }},
      {loop, "no single i64", [](BlockPlan& p) { p.step().inputs[0] = p.condition; }},
      {loop, "no single i64", [](BlockPlan& p) { p.body().params[0] = p.a; }},
      {loop, "no single bool", [](BlockPlan& p) { p.step().inputs[1] = p.trips; }},
      {loop, "no single bool", [](BlockPlan& p) { p.body().results[0] = p.b; }},
      {loop, "two trip counts", [](BlockPlan& p) { p.block().trips = {4}; }},
      {call, "carries values", [](BlockPlan& p) { p.block().trips = {4}; }},
      {loop, "nothing ends", [](BlockPlan& p) { p.step().inputs[0] = kNoTensor; }},
      {loop, "carried value lacks", [](BlockPlan& p) { p.step().inputs[2] = kNoTensor; }},
      {loop, "different types or ranks", [](BlockPlan& p) { p.step().inputs[2] = p.trips; }},
      {loop, "different types or ranks",
       [](BlockPlan& p) {
         p.plan.tensors[p.b].dims = {2, 2};
       }},
      {loop, "no axis 1",
       [](BlockPlan& p) {
         p.block().scanned = {{1, false}};
         p.step().inputs.push_back(p.x);
         p.body().params.push_back(p.add_buffer(DType::f32, {}));
         p.plan.buffers.back().last = 1;
       }},
      {loop, "different types or ranks",
       [](BlockPlan& p) {
         p.block().scanned = {{0, false}};
         p.step().inputs.push_back(p.x);
         p.body().params.push_back(p.a);
       }},
  });
}

TEST(PlanValidate, EachRuleOfValuesOfBlocksRefuses) {
  using enum BlockKind;
  expect_refusals({
      {loop, "a condition that the loop lacks",
       [](BlockPlan& p) {
         p.body().params[1] = p.add_buffer(DType::boolean, {});
         p.plan.buffers.back().last = 1;
       }},
      {loop, "elements that share bytes",
       [](BlockPlan& p) {
         p.block().scanned = {{0, false}};
         p.plan.constants[0].bytes = 2;
         p.step().inputs.push_back(p.add(StorageKind::constant, 0, DType::i4, {4}));
         p.body().params.push_back(p.add_buffer(DType::i4, {}));
         p.plan.buffers.back().last = 1;
       }},
      {loop, "whose size only running tells",
       [](BlockPlan& p) {
         p.plan.symbols = {{"n", SymbolSource::computed, 0, 0, {0, 9}}};
         p.plan.profiles[0].symbols = {{0, 1, 9}};
         p.plan.tensors[p.y].dims = {Expr::symbol(0)};
         p.plan.steps[1].outputs = {p.y};
         p.body().results[1] = p.y;
       }},
      {loop, "which nothing has written", [](BlockPlan& p) { p.plan.steps[1].outputs = {p.y}; }},
      {loop, "before anything has written", [](BlockPlan& p) { p.body().params[2] = p.b; }},
      {loop, "not at step 1", [](BlockPlan& p) { p.plan.buffers[0].last = 0; }},
      {loop, "input or a constant", [](BlockPlan& p) { p.body().params[2] = p.x; }},
      {loop, "does not exist", [](BlockPlan& p) { p.body().params[2] = 99; }},
      {loop, "does not exist", [](BlockPlan& p) { p.body().results[1] = 99; }},
      {branch, "without a condition", [](BlockPlan& p) { p.step().inputs = {kNoTensor}; }},
      {branch, "no single bool", [](BlockPlan& p) { p.step().inputs = {p.x}; }},
      {branch, "with 1 params, not 0", [](BlockPlan& p) { p.body().params = {p.a}; }},
      {branch, "lacks a tensor", [](BlockPlan& p) { p.body().results = {kNoTensor}; }},
      {call, "with 0 params, not 1", [](BlockPlan& p) { p.body().params.clear(); }},
      {call, "with 0 results, not 1", [](BlockPlan& p) { p.body().results.clear(); }},
      {call, "different types or ranks", [](BlockPlan& p) { p.plan.tensors[p.a].dtype = DType::i32; }},
      // What a body writes is not there behind the block.
      {branch, "before anything has written",
       [](BlockPlan& p) {
         p.add_copy(p.b, p.y);
         p.plan.buffers[1].last = 3;
       }},
      {call, "operation", [](BlockPlan& p) { p.step().op = "relu"; }},
      {call, "size from input",
       [](BlockPlan& p) {
         p.plan.symbols = {{"n", SymbolSource::computed, 0, 0, {0, 9}}};
         p.plan.profiles[0].symbols = {{0, 1, 9}};
         p.step().counts = {{0, 0, 0}};
       }},
  });
}

// A round may read what was there before the loop only if nothing else has taken its memory by then.
TEST(PlanValidate, LoopsKeepWhatTheyRead) {
  BlockPlan p(BlockKind::loop);
  const TensorId before = p.add_buffer();
  Step copy;
  copy.work = Copy();
  copy.inputs = {p.x};
  copy.outputs = {before};
  p.plan.steps.insert(p.plan.steps.begin(), copy);  // 0: x to before, 1: loop, 2 and 3: its steps
  p.add_copy(p.a, p.b);
  std::get<Block>(p.plan.steps[1].work).bodies[0].steps = 2;
  p.plan.steps[2].inputs = {before};
  p.plan.buffers[0] = {64, 1, 3};
  p.plan.buffers[1] = {64, 1, 3};
  p.plan.buffers[2] = {64, 0, 3};
  EXPECT_TRUE(validate(p.plan)) << validate(p.plan).error().to_string();
  p.plan.buffers[2].last = 2;  // when the second round wants it, step 3 of the first may have overwritten it
  EXPECT_FALSE(validate(p.plan));
}

TEST(PlanValidate, BlocksNestToALimit) {
  for (const size_t depth : {kMaxBlockDepth, kMaxBlockDepth + 1}) {
    Plan plan;
    for (size_t i = 0; i < depth; ++i) {
      Block call;
      call.bodies = {{static_cast<uint32_t>(depth - i - 1), {}, {}}};
      plan.steps.emplace_back().work = call;
    }
    const auto places = find_places(plan.steps);
    EXPECT_EQ(places.has_value(), depth == kMaxBlockDepth);
    if (!places) continue;
    EXPECT_EQ(places->back().depth, depth - 1);
    EXPECT_EQ(places->front().end, depth);
  }
}

}  // namespace
}  // namespace lathe::plan
