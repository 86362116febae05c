// SPDX-License-Identifier: Apache-2.0
// Loops that read slices of inputs and write slices of outputs.
#include "runtime/block_plans.h"

namespace lathe {
namespace {

using Id = plan::TensorId;
constexpr Id kNone = plan::kNoTensor;

// Stacks running sums of slices. The other axis of x is 3 long.
struct ScanLoop : PlanMaker {
  ScanLoop(uint32_t axis, bool reads_backwards, bool writes_backwards) {
    Shape dims = {3, 3};
    const Id x = input("x", DType::f32, dims);
    const Expr n = dimension("n", 0, axis);
    dims[axis] = plan.tensors[x].dims[axis] = n;
    Shape stacked = {3, 3};
    stacked[1 - axis] = n;  // along the other axis
    const Id y = output("y", DType::f32, {3}), z = output("z", DType::f32, stacked);
    const Id zero = floats({3}, {0, 0, 0});
    const Id sum = buffer("sum", DType::f32, {3}), slice = buffer("slice", DType::f32, {3});
    const Id result = buffer("result", DType::f32, {3});
    const size_t at = loop(1, {kNone, kNone, zero, x}, {y, z});
    get(at).scanned = {{axis, reads_backwards}};
    get(at).stacked = {{1 - axis, writes_backwards}};
    begin_body(at, {kNone, kNone, sum, slice});
    elementwise("add", sum, slice, result);
    end_body(at, {kNone, result, result});
  }
};

TEST(Blocks, LoopsScanAndStack) {
  for (const uint32_t axis : {0, 1})
    for (const bool reads : {false, true})
      for (const bool writes : {false, true})
        for (const int64_t n : {0, 1, 4}) {
          SCOPED_TRACE(fmt::format("axis {} {} {} {}", axis, reads, writes, n));
          ScanLoop maker(axis, reads, writes);
          Dims dims = {3, 3}, stacked = {3, 3};
          dims[axis] = stacked[1 - axis] = n;
          const Tensor x = random_tensor(DType::f32, dims, 1);
          std::vector<float> sum(3), all(static_cast<size_t>(3 * n));
          for (int64_t round = 0; round < n; ++round)
            for (int64_t k = 0; k < 3; ++k) {
              const int64_t read = reads ? n - 1 - round : round, written = writes ? n - 1 - round : round;
              sum[static_cast<size_t>(k)] +=
                  static_cast<const float*>(x.data())[axis == 0 ? read * 3 + k : k * n + read];
              all[static_cast<size_t>(axis == 0 ? k * n + written : written * 3 + k)] = sum[static_cast<size_t>(k)];
            }
          expect_outputs(maker, {x}, {floats(sum), floats(stacked, all)});
        }
}

TEST(Blocks, BodiesMayWriteToTheirParams) {
  PlanMaker maker;
  const Id x = maker.input("x", DType::f32, {3, 8}), y = maker.output("y", DType::f32, {3, 8});
  const Id slice = maker.buffer("slice", DType::f32, {8}), result = maker.buffer("result", DType::f32, {8});
  const size_t at = maker.loop(0, {kNone, kNone, x}, {y});
  maker.get(at).scanned = maker.get(at).stacked = {{0, false}};
  maker.begin_body(at, {kNone, kNone, slice});
  maker.elementwise("add", slice, slice, slice);
  maker.elementwise("add", slice, slice, result);
  maker.end_body(at, {kNone, result});
  const Tensor input = random_tensor(DType::f32, {3, 8}, 1);
  std::vector<float> wanted;
  for (int64_t i = 0; i < input.volume(); ++i) wanted.push_back(4 * static_cast<const float*>(input.data())[i]);
  expect_outputs(maker, {input}, {floats({3, 8}, wanted)});  // in each run: the input stays
}

TEST(Blocks, ScannedInputsAreAsLongAsEachOther) {
  PlanMaker maker;
  const Id a = maker.input("a", DType::f32, {1}), b = maker.input("b", DType::f32, {1});
  maker.plan.tensors[a].dims = {maker.dimension("n", 0, 0)};
  maker.plan.tensors[b].dims = {maker.dimension("m", 1, 0)};
  const Id y = maker.output("y", DType::f32, {}), zero = maker.floats({}, {0});
  const Id sum = maker.buffer("sum", DType::f32, {}), one = maker.buffer("one", DType::f32, {});
  const Id other = maker.buffer("other", DType::f32, {}), product = maker.buffer("product", DType::f32, {});
  const Id result = maker.buffer("result", DType::f32, {});
  const size_t at = maker.loop(1, {kNone, kNone, zero, a, b}, {y});
  maker.get(at).scanned = {{0, false}, {0, true}};
  maker.begin_body(at, {kNone, kNone, sum, one, other});
  maker.elementwise("mul", one, other, product);
  maker.elementwise("add", sum, product, result);
  maker.end_body(at, {kNone, result});
  expect_outputs(maker, {floats({1, 2, 3}), floats({10, 100, 1000})}, {floats({}, {1000 + 200 + 30})});
  const Error error = error_of(maker, {floats({1, 2, 3}), floats({1, 2})});
  EXPECT_EQ(error.code, ErrorCode::execution_failed);
  EXPECT_NE(error.message.find("scans 'a' of 3 slices, and 'b' has 2"), std::string::npos) << error.message;
}

// Stacks x, 2x, 4x... while the sum of their elements is below the limit: only the end tells how many.
TEST(Blocks, StackedValuesGrow) {
  for (const uint32_t axis : {0, 1})
    for (const bool reversed : {false, true}) {
      SCOPED_TRACE(fmt::format("axis {} {}", axis, reversed));
      PlanMaker maker;
      const Id x = maker.input("x", DType::f32, {2}), n = maker.input("n", DType::i64, {});
      const Expr length = maker.computed("length");
      Shape dims = {2, 2};
      dims[axis] = length;
      const Id y = maker.output("y", DType::f32, dims), yes = maker.truth(true), one = maker.number(1);
      const Id last = maker.buffer("last", DType::i64, {}), round = maker.buffer("round", DType::i64, {});
      const Id condition = maker.buffer("condition", DType::boolean, {});
      maker.elementwise("sub", n, one, last);
      const Id value = maker.buffer("value", DType::f32, {2}), twice = maker.buffer("twice", DType::f32, {2});
      const Id all = maker.slot("all", DType::f32, dims);
      const size_t at = maker.loop(1, {kNone, yes, x}, {kNone, all});
      maker.get(at).stacked = {{axis, reversed}};
      maker.begin_body(at, {round, kNone, value});
      maker.elementwise("add", value, value, twice);
      maker.elementwise("less", round, last, condition);
      maker.end_body(at, {condition, twice, value});
      maker.copy(all, y);
      for (const int64_t rounds : {1, 2, 16, 17, 60}) {
        Dims result = {2, 2};
        result[axis] = rounds;
        std::vector<float> wanted(static_cast<size_t>(2 * rounds));
        for (int64_t i = 0; i < rounds; ++i)
          for (int64_t k = 0; k < 2; ++k) {
            const int64_t place = reversed ? rounds - 1 - i : i;
            wanted[static_cast<size_t>(axis == 0 ? 2 * place + k : k * rounds + place)] =
                static_cast<float>(std::ldexp(k + 1, static_cast<int>(i)));
          }
        expect_outputs(maker, {floats({1, 2}), number(rounds)}, {floats(result, wanted)});
      }
    }
}

}  // namespace
}  // namespace lathe
