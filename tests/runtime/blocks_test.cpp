// SPDX-License-Identifier: Apache-2.0
// Loops, branches and calls on the CPU and on a device whose memory the host copies to and from.
#include "runtime/block_plans.h"

namespace lathe {
namespace {

using Id = plan::TensorId;
constexpr Id kNone = plan::kNoTensor;

// y = x + n * step, in n rounds.
struct CountedLoop : PlanMaker {
  explicit CountedLoop(bool in_place = false) {
    const Id x = input("x", DType::f32, {3}), n = input("n", DType::i64, {});
    const Id y = output("y", DType::f32, {3});
    const Id step = floats({}, {2});
    const Id param = buffer("param", DType::f32, {3});
    const Id result = in_place ? y : buffer("result", DType::f32, {3});
    const size_t at = loop(1, {n, kNone, x}, {y});
    begin_body(at, {kNone, kNone, param});
    elementwise("add", param, step, result);
    end_body(at, {kNone, result});
  }
};

TEST(Blocks, LoopsCarryValues) {
  for (const bool in_place : {false, true})
    for (const int64_t rounds : {0, 1, 2, 3, 10, -5}) {
      CountedLoop maker(in_place);
      const float added = 2 * static_cast<float>(std::max<int64_t>(rounds, 0));
      expect_outputs(maker, {floats({1, 2, 3}), number(rounds)}, {floats({1 + added, 2 + added, 3 + added})});
    }
}

// Doubles x until an element reaches the limit.
struct WhileLoop : PlanMaker {
  WhileLoop() {
    const Id x = input("x", DType::f32, {}), limit = input("limit", DType::f32, {});
    const Id y = output("y", DType::f32, {}), rounds = output("rounds", DType::i64, {});
    const Id zero = number(0), one = number(1);
    const Id begins = buffer("begins", DType::boolean, {});
    elementwise("less", x, limit, begins);
    const Id param = buffer("param", DType::f32, {}), result = buffer("result", DType::f32, {});
    const Id count = buffer("count", DType::i64, {}), next = buffer("next", DType::i64, {});
    const Id condition = buffer("condition", DType::boolean, {}), seen = buffer("seen", DType::boolean, {});
    const size_t at = loop(2, {kNone, begins, x, zero}, {y, rounds});
    begin_body(at, {kNone, seen, param, count});
    elementwise("add", param, param, result);
    elementwise("add", count, one, next);
    elementwise("less", result, limit, condition);
    end_body(at, {condition, result, next});
  }
};

TEST(Blocks, ConditionsEndLoops) {
  WhileLoop maker;
  expect_outputs(maker, {floats({}, {1}), floats({}, {100})}, {floats({}, {128}), number(7)});
  expect_outputs(maker, {floats({}, {1}), floats({}, {2})}, {floats({}, {2}), number(1)});
  expect_outputs(maker, {floats({}, {5}), floats({}, {2})}, {floats({}, {5}), number(0)});
}

// a, b, c = b, c, a: all results are params of the body.
TEST(Blocks, CarriedValuesChangePlaces) {
  for (const bool crosses : {false, true}) {
    PlanMaker maker;
    const Id n = maker.input("n", DType::i64, {});
    std::vector<Id> outer, outputs, params;
    for (const char* name : {"a", "b", "c"}) outer.push_back(maker.input(name, DType::f32, {2}));
    for (const char* name : {"x", "y", "z"}) outputs.push_back(maker.output(name, DType::f32, {2}));
    for (int i = 0; i < 3; ++i) params.push_back(maker.buffer("param", DType::f32, {2}));
    const size_t at = maker.loop(3, {n, kNone, outer[0], outer[1], outer[2]}, outputs);
    maker.begin_body(at, {kNone, kNone, params[0], params[1], params[2]});
    // The second form has another value in between, whose param and result change places by themselves.
    const Id result = crosses ? maker.buffer("result", DType::f32, {2}) : params[2];
    if (crosses) maker.copy(params[2], result);
    maker.end_body(at, {kNone, params[1], result, params[0]});
    const Tensor a = floats({1, 2}), b = floats({3, 4}), c = floats({5, 6});
    expect_outputs(maker, {number(0), a, b, c}, {a, b, c});
    expect_outputs(maker, {number(1), a, b, c}, {b, c, a});
    expect_outputs(maker, {number(2), a, b, c}, {c, a, b});
    expect_outputs(maker, {number(3), a, b, c}, {a, b, c});
  }
}

// a, b = a + b, a: a param is the result of another value, and the other's result is written in place.
TEST(Blocks, ParamsAreResultsOfOtherValues) {
  PlanMaker maker;
  const Id n = maker.input("n", DType::i64, {}), one = maker.number(1), zero = maker.number(0);
  const Id y = maker.output("y", DType::i64, {}), z = maker.output("z", DType::i64, {});
  const Id a = maker.buffer("a", DType::i64, {}), b = maker.buffer("b", DType::i64, {});
  const Id sum = maker.buffer("sum", DType::i64, {}), former = maker.buffer("former", DType::i64, {});
  const size_t at = maker.loop(2, {n, kNone, one, zero}, {sum, former});
  maker.begin_body(at, {kNone, kNone, a, b});
  maker.elementwise("add", a, b, sum);
  maker.end_body(at, {kNone, sum, a});
  maker.copy(sum, y);
  maker.copy(former, z);
  const int64_t numbers[] = {0, 1, 1, 2, 3, 5, 8, 13};
  for (int64_t rounds = 0; rounds < 7; ++rounds)
    expect_outputs(maker, {number(rounds)}, {number(numbers[rounds + 1]), number(numbers[rounds])});
}

// A value from outside, a param as it came, and the round's number.
TEST(Blocks, ResultsMayBeOtherThanWhatTheBodyMakes) {
  PlanMaker maker;
  const Id n = maker.input("n", DType::i64, {}), x = maker.input("x", DType::f32, {2});
  const Id y = maker.output("y", DType::f32, {2}), z = maker.output("z", DType::f32, {2});
  const Id last = maker.output("last", DType::i64, {});
  const Id start = maker.floats({2}, {7, 8}), before = maker.number(-1);
  const Id a = maker.buffer("a", DType::f32, {2}), b = maker.buffer("b", DType::f32, {2});
  const Id former = maker.buffer("former", DType::i64, {}), round = maker.buffer("round", DType::i64, {});
  const size_t at = maker.loop(3, {n, kNone, start, start, before}, {y, z, last});
  maker.begin_body(at, {round, kNone, a, b, former});
  maker.end_body(at, {kNone, x, b, round});
  expect_outputs(maker, {number(0), floats({1, 2})}, {floats({7, 8}), floats({7, 8}), number(-1)});
  expect_outputs(maker, {number(5), floats({1, 2})}, {floats({1, 2}), floats({7, 8}), number(4)});
  expect_outputs(maker, {number(4099), floats({1, 2})}, {floats({1, 2}), floats({7, 8}), number(4098)});
}

// The sum of i * j for i < n and j < i.
TEST(Blocks, LoopsNest) {
  PlanMaker maker;
  const Id n = maker.input("n", DType::i64, {}), y = maker.output("y", DType::i64, {}), zero = maker.number(0);
  const Id i = maker.buffer("i", DType::i64, {}), sum = maker.buffer("sum", DType::i64, {});
  const size_t outer = maker.loop(1, {n, kNone, zero}, {y});
  maker.begin_body(outer, {i, kNone, sum});
  const Id outer_result = maker.buffer("outer result", DType::i64, {}), j = maker.buffer("j", DType::i64, {});
  const Id inner_sum = maker.buffer("inner sum", DType::i64, {}), product = maker.buffer("product", DType::i64, {});
  const Id inner_result = maker.buffer("inner result", DType::i64, {});
  const size_t inner = maker.loop(1, {i, kNone, sum}, {outer_result});
  maker.begin_body(inner, {j, kNone, inner_sum});
  maker.elementwise("mul", i, j, product);
  maker.elementwise("add", inner_sum, product, inner_result);
  maker.end_body(inner, {kNone, inner_result});
  maker.end_body(outer, {kNone, outer_result});
  for (const int64_t count : {0, 1, 2, 3, 7}) {
    int64_t wanted = 0;
    for (int64_t a = 0; a < count; ++a)
      for (int64_t b = 0; b < a; ++b) wanted += a * b;
    expect_outputs(maker, {number(count)}, {number(wanted)});
  }
}

// Carries a list to which each round appends its number; the output's size, and that of what reads it, is the run's.
struct GrowingLoop : PlanMaker {
  explicit GrowingLoop(bool in_place) {
    const Id n = input("n", DType::i64, {});
    const Expr size = computed("size"), before = computed("before"), after = in_place ? size : computed("after");
    const Id y = output("y", DType::i64, {size}), z = output("z", DType::i64, {size});
    const Id first = constant<int64_t>(DType::i64, {1}, {-1});
    const Id round = buffer("round", DType::i64, {1});
    const Id list = slot("list", DType::i64, {before}), longer = slot("longer", DType::i64, {after});
    const Id whole = in_place ? longer : slot("whole", DType::i64, {size});
    const size_t at = loop(1, {n, kNone, first}, {whole});
    begin_body(at, {round, kNone, list});
    evaluate("concat", "axis=0", {list, round}, {longer});
    end_body(at, {kNone, longer});
    copy(whole, y);
    elementwise("add", whole, whole, z);
  }
};

TEST(Blocks, CarriedValuesGrow) {
  for (const bool in_place : {false, true}) {
    GrowingLoop maker(in_place);
    for (const int64_t rounds : {0, 1, 2, 3, 100}) {
      std::vector<int64_t> list = {-1}, twice = {-2};
      for (int64_t i = 0; i < rounds; ++i) list.push_back(i), twice.push_back(2 * i);
      expect_outputs(maker, {number(rounds)},
                     {tensor(DType::i64, {rounds + 1}, list), tensor(DType::i64, {rounds + 1}, twice)});
    }
  }
}

// A kernel in the body is prepared in each round: it doubles a list to which a 1 has been appended.
TEST(Blocks, KernelsTakeTheSizesOfTheRound) {
  PlanMaker maker;
  const Id n = maker.input("n", DType::i64, {});
  const Expr before = maker.computed("before"), after = maker.computed("after");
  const Id y = maker.output("y", DType::f32, {after}), one = maker.floats({1}, {1});
  const Id list = maker.slot("list", DType::f32, {before}), longer = maker.slot("longer", DType::f32, {after});
  const Id twice = maker.slot("twice", DType::f32, {after});
  const size_t at = maker.loop(1, {n, kNone, one}, {y});
  maker.begin_body(at, {kNone, kNone, list});
  maker.evaluate("concat", "axis=0", {list, one}, {longer});
  maker.kernel("interpret", "in=2; r2=add r0 r1; out r2", {longer, longer}, {twice});
  maker.end_body(at, {kNone, twice});
  const auto context = maker.context(std::make_shared<interpreter::InterpretingDevice>());
  ASSERT_TRUE(context);
  for (const int64_t rounds : {3, 0, 5, 1}) {
    std::vector<float> wanted = {1};
    for (int64_t i = 0; i < rounds; ++i) {
      wanted.push_back(1);
      for (float& value : wanted) value *= 2;
    }
    expect_close(run_engine(*context, std::vector<Tensor>{number(rounds)})[0], floats(wanted), 0);
  }
}

TEST(Blocks, SizesThatDoNotFitAreNamed) {
  GrowingLoop maker(false);
  maker.plan.tensors[5].dims = {1};  // list
  const Error error = error_of(maker, {number(2)});
  EXPECT_EQ(error.code, ErrorCode::execution_failed);
  EXPECT_NE(error.message.find("round 1 of 'block0': step 'block0' (loop): 'longer' of [2] cannot become 'list', which "
                               "is [1] by the plan"),
            std::string::npos)
      << error.message;
}

// What is greater than 0 of x, or x itself twice; the sizes differ.
TEST(Blocks, BranchesRunOneBody) {
  PlanMaker maker;
  const Id condition = maker.input("condition", DType::boolean, {}), x = maker.input("x", DType::f32, {4});
  const Expr kept = maker.computed("kept"), size = maker.computed("size");
  const Id y = maker.output("y", DType::f32, {size}), mask = maker.buffer("mask", DType::boolean, {4});
  const Id zero = maker.floats({}, {0});
  maker.elementwise("greater", x, zero, mask);
  const Id result = maker.slot("result", DType::f32, {size}), part = maker.slot("part", DType::f32, {kept});
  const size_t at = maker.block(plan::BlockKind::branch, {condition}, {result});
  maker.begin_body(at, {});
  maker.evaluate("compress", "axis=0", {x, mask}, {part});
  maker.end_body(at, {part});
  maker.begin_body(at, {});
  maker.evaluate("concat", "axis=0", {x, x}, {result});
  maker.end_body(at, {result});
  maker.copy(result, y);
  expect_outputs(maker, {truth(true), floats({1, -2, 3, -4})}, {floats({1, 3})});
  expect_outputs(maker, {truth(false), floats({1, -2, 3, -4})}, {floats({1, -2, 3, -4, 1, -2, 3, -4})});
  // In one context.
  const auto context = maker.context(test_device());
  for (const bool holds : {true, false, true, true, false})
    EXPECT_EQ(run_engine(*context, std::vector<Tensor>{truth(holds), floats({1, -2, 3, -4})})[0].volume(),
              holds ? 2 : 8);
}

// The body that is not taken would fail: it reshapes 3 elements to 2.
TEST(Blocks, TheOtherBodyDoesNotRun) {
  PlanMaker maker;
  const Id condition = maker.input("condition", DType::boolean, {}), x = maker.input("x", DType::f32, {3});
  const Id y = maker.output("y", DType::f32, {2}), shape = maker.constant<int64_t>(DType::i64, {1}, {2});
  const Id whole = maker.floats({2}, {5, 6});
  const size_t at = maker.block(plan::BlockKind::branch, {condition}, {y});
  maker.begin_body(at, {});
  maker.end_body(at, {whole});
  maker.begin_body(at, {});
  maker.evaluate("reshape", "", {x, shape}, {y});
  maker.end_body(at, {y});
  expect_outputs(maker, {truth(true), floats({1, 2, 3})}, {floats({5, 6})});
  EXPECT_NE(error_of(maker, {truth(false), floats({1, 2, 3})}).message.find("reshape"), std::string::npos);
}

// One body has sizes that are negative for short inputs, which it is not for: the first n - 3 elements of x, or x.
TEST(Blocks, SizesOfTheOtherBodyDoNotMatter) {
  PlanMaker maker;
  const Id condition = maker.input("condition", DType::boolean, {}), x = maker.input("x", DType::f32, {1});
  const Expr n = maker.dimension("n", 1, 0), size = maker.computed("size");
  maker.plan.tensors[x].dims = {n};
  const Id y = maker.output("y", DType::f32, {size}), part = maker.buffer("part", DType::f32, {n - 3});
  const Id twice = maker.buffer("twice", DType::f32, {n - 3});
  const size_t at = maker.block(plan::BlockKind::branch, {condition}, {y});
  const Id start = maker.constant<int64_t>(DType::i64, {1}, {0}), end = maker.constant<int64_t>(DType::i64, {1}, {-3});
  maker.begin_body(at, {});
  maker.evaluate("slice", "", {x, start, end}, {part});
  maker.elementwise("add", part, part, twice);
  maker.end_body(at, {twice});
  maker.begin_body(at, {});
  maker.end_body(at, {x});
  for (const auto& device : devices()) {
    const auto context = maker.context(device);
    ASSERT_TRUE(context);
    const auto run = [&](bool holds, const Tensor& of) {
      return try_engine(*context, std::vector<Tensor>{truth(holds), of});
    };
    expect_close((*run(true, floats({1, 2, 3, 4, 5})))[0], floats({2, 4}), 0);
    expect_close((*run(false, floats({1, 2})))[0], floats({1, 2}), 0);
    const Result<std::vector<Tensor>> refused = run(true, floats({1, 2}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::shape_mismatch) << refused.error().message;
    expect_close((*run(false, floats({1, 2, 3, 4})))[0], floats({1, 2, 3, 4}), 0);
    expect_close((*run(true, floats({1, 2, 3, 4})))[0], floats({2}), 0);
  }
}

TEST(Blocks, CallsRunTheirBody) {
  PlanMaker maker;
  const Id x = maker.input("x", DType::f32, {2}), y = maker.output("y", DType::f32, {2});
  const Id param = maker.buffer("param", DType::f32, {2}), z = maker.buffer("z", DType::f32, {2});
  const Id result = maker.buffer("result", DType::f32, {2});
  for (const auto& [from, to] : {std::pair{x, z}, {z, y}}) {
    const size_t at = maker.block(plan::BlockKind::call, {from}, {to});
    maker.begin_body(at, {param});
    maker.elementwise("mul", param, param, result);
    maker.end_body(at, {result});
  }
  expect_outputs(maker, {floats({2, 3})}, {floats({16, 81})});
}

// A branch in a loop in a loop: Collatz's sequences, whose lengths are stacked.
TEST(Blocks, KindsNest) {
  PlanMaker maker;
  const Id x = maker.input("x", DType::i64, {5}), y = maker.output("y", DType::i64, {5});
  const Id zero = maker.number(0), one = maker.number(1), two = maker.number(2), three = maker.number(3);
  const auto buffer = [&](const char* name, DType type = DType::i64) { return maker.buffer(name, type, {}); };
  const Id start = buffer("start"), begins = buffer("begins", DType::boolean), length = buffer("length");
  const size_t outer = maker.loop(0, {kNone, kNone, x}, {y});
  maker.get(outer).scanned = {{0, false}};
  maker.get(outer).stacked = {{0, false}};
  maker.begin_body(outer, {kNone, kNone, start});
  maker.elementwise("greater", start, one, begins);
  const Id value = buffer("value"), count = buffer("count"), next = buffer("next"), counted = buffer("counted");
  const Id goes_on = buffer("goes on", DType::boolean), even = buffer("even", DType::boolean), rest = buffer("rest");
  const size_t inner = maker.loop(2, {kNone, begins, start, zero}, {kNone, length});
  maker.begin_body(inner, {kNone, kNone, value, count});
  maker.elementwise("add", count, one, counted);
  maker.elementwise("mod", value, two, rest);
  maker.elementwise("equal", rest, zero, even);
  const size_t branch = maker.block(plan::BlockKind::branch, {even}, {next});
  maker.begin_body(branch, {});
  maker.elementwise("div", value, two, next);
  maker.end_body(branch, {next});
  maker.begin_body(branch, {});
  const Id product = buffer("product"), sum = buffer("sum");
  maker.elementwise("mul", value, three, product);
  maker.elementwise("add", product, one, sum);
  maker.end_body(branch, {sum});
  maker.elementwise("greater", next, one, goes_on);
  maker.end_body(inner, {goes_on, next, counted});
  maker.end_body(outer, {kNone, length});
  expect_outputs(maker, {tensor<int64_t>(DType::i64, {5}, {1, 2, 3, 6, 27})},
                 {tensor<int64_t>(DType::i64, {5}, {0, 1, 7, 8, 111})});
}

}  // namespace
}  // namespace lathe
