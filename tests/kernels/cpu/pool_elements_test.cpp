// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/pool_elements/pool_elements.h"

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
const Tactic& pool_elements_tactic();

namespace {

void compare(const PoolingAttrs& attrs, const Tensor& x, size_t results, std::mt19937& random) {
  const std::string what = to_text(attrs);
  const std::vector<Tensor> inputs = {x};
  const Result<std::vector<Tensor>> expected = run_op(attrs, inputs, results);
  ASSERT_TRUE(expected) << what << ": " << expected.error().message;
  Problem problem;
  problem.attributes = &attrs;
  Operand operand;
  operand.dtype = x.dtype();
  operand.dims = to_shape(x.dims());
  operand.opt_dims = x.dims();
  problem.inputs = {operand};
  for (const Tensor& result : *expected) {
    operand.dtype = result.dtype();
    operand.dims = to_shape(result.dims());
    operand.opt_dims = result.dims();
    problem.outputs.push_back(operand);
  }
  problem.program = {1, {}, {0}};
  const Matched matched = pool_elements_tactic().match(problem);
  ASSERT_TRUE(matched) << matched.error().reason;
  const auto kernel = make_kernel("pool_elements", (*matched)->emit({})->params);
  const TestTensor input = TestTensor::copy_of(x, random);
  std::vector<TestTensor> strided;
  std::vector<TensorArg> outputs;
  strided.reserve(2);
  for (const Tensor& result : *expected)
    outputs.push_back(
        strided.emplace_back(TestTensor::copy_of(*Tensor::allocate(result.dtype(), result.dims()), random)).arg);
  run_kernel(*kernel, {input.arg}, outputs, pick_between(random, 0, 1) ? 1 : 3);
  if (::testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < results; ++i)
    attrs.op == PoolingOp::max ? expect_same(strided[i].checked_content(), (*expected)[i], what)
                               : expect_close(strided[i].checked_content(), (*expected)[i], what);
}

PoolingAttrs random_attributes(PoolingOp op, size_t pooled, std::mt19937& random) {
  PoolingAttrs attrs;
  attrs.op = op;
  attrs.padding_mode = static_cast<PaddingMode>(pick_between(random, 0, 3));
  attrs.count_include_pad = pick_between(random, 0, 1);
  attrs.column_major_indices = pick_between(random, 0, 1);
  attrs.p = pick_between(random, 1, 3);
  for (size_t i = 0; i < pooled; ++i) {
    attrs.window.push_back(pick_between(random, 1, 3));
    attrs.stride.push_back(pick_between(random, 1, 3));
    attrs.dilation.push_back(pick_between(random, 1, 2));
    const bool is_same = attrs.padding_mode == PaddingMode::same_upper || attrs.padding_mode == PaddingMode::same_lower;
    attrs.pads_begin.push_back(is_same ? 0 : pick_between(random, 0, attrs.window.back() - 1));
    attrs.pads_end.push_back(is_same ? 0 : pick_between(random, 0, attrs.window.back() - 1));
  }
  return attrs;
}

Dims random_image(size_t pooled, std::mt19937& random) {
  const auto rank = static_cast<int64_t>(pooled) + pick_between(random, 0, pooled > 2 ? 1 : 2);
  Dims dims = random_dims(rank, 5, pooled > 2 ? 6 : 12, random);
  if (rank > 2 && pick_between(random, 0, 9) == 0) dims[0] = 0;
  if (pooled == 1 && pick_between(random, 0, 3) == 0) dims.back() = 1200;  // more than a block
  return dims;
}

TEST(PoolElements, MaximaAreTheEvaluation) {
  std::mt19937 random(331);
  for (int repeat = 0; repeat < 20; ++repeat)
    for (const DType type : kAllTypes) {
      if (type == DType::boolean) continue;
      const auto pooled = static_cast<size_t>(pick_between(random, 1, 3));
      const PoolingAttrs attrs = random_attributes(PoolingOp::max, pooled, random);
      // Few different numbers, so that many are equal, or infinities and NaN.
      const Dims dims = random_image(pooled, random);
      const Tensor x = repeat % 2 ? random_integers(type, dims, -2, 2, random) : hard_tensor(type, dims, random);
      compare(attrs, x, static_cast<size_t>(pick_between(random, 1, 2)), random);
    }
}

TEST(PoolElements, SumsAreTheEvaluation) {
  std::mt19937 random(332);
  for (int repeat = 0; repeat < 60; ++repeat)
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      const auto pooled = static_cast<size_t>(pick_between(random, 1, 3));
      const PoolingAttrs attrs = random_attributes(repeat % 2 ? PoolingOp::average : PoolingOp::lp, pooled, random);
      compare(attrs, random_integers(type, random_image(pooled, random), -9, 9, random), 1, random);
    }
}

TEST(PoolElements, TheLeastNumbersAreMaxima) {
  std::mt19937 random(333);
  PoolingAttrs attrs;
  attrs.window = {2, 2};
  for (const DType type : {DType::i32, DType::i64, DType::u32, DType::u64, DType::f32}) {
    Tensor x = *Tensor::allocate(type, {2, 4, 5});
    const double least = type == DType::i32   ? -0x1p31
                         : type == DType::i64 ? -0x1p63
                         : type == DType::f32 ? -HUGE_VAL
                                              : 0;
    from_doubles(std::vector<double>(40, least), x);
    compare(attrs, x, 2, random);
  }
}

// In the padding alone there is no maximum.
TEST(PoolElements, WindowsOfPaddingAlone) {
  std::mt19937 random(334);
  PoolingAttrs attrs;
  attrs.window = {2, 2};
  attrs.pads_begin = {3, 0};
  attrs.pads_end = {0, 3};
  for (const DType type :
       {DType::f32, DType::f16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64, DType::u64})
    compare(attrs, random_integers(type, {2, 3, 4, 5}, 0, 9, random), 2, random);
}

TEST(PoolElements, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("pool_elements");
  using P = PoolElementsParams;
  const auto makes = [&](auto change) {
    P params;
    params.axes = {{2, 1}, {3, 1}};
    change(params);
    return static_cast<bool>(factory(Record{encode_params(params)}));
  };
  EXPECT_TRUE(makes([](P&) {}));
  EXPECT_FALSE(makes([](P& p) { p.axes.clear(); }));
  EXPECT_FALSE(makes([](P& p) { p.axes.resize(9); }));
  EXPECT_FALSE(makes([](P& p) { p.axes[0].kernel = 0; }));
  EXPECT_FALSE(makes([](P& p) { p.axes[0].stride = 0; }));
  EXPECT_FALSE(makes([](P& p) { p.axes[1].dilation = -1; }));
  EXPECT_FALSE(makes([](P& p) { p.axes[1].begin = int64_t{1} << 40; }));
  EXPECT_FALSE(makes([](P& p) { p.axes[1].rule = static_cast<PaddingRule>(-1); }));
  EXPECT_FALSE(makes([](P& p) { p.axes[0].kernel = p.axes[1].kernel = 1 << 20; }));
  EXPECT_FALSE(makes([](P& p) { p.kind = static_cast<PoolKind>(3); }));
  EXPECT_FALSE(makes([](P& p) { p.exponent = 0; }));
  EXPECT_FALSE(factory(Record{{}, nullptr}));

  std::mt19937 random(335);
  const auto checks = [&](PoolKind kind, DType type, const Dims& x, std::vector<std::pair<DType, Dims>> results) {
    P params;
    params.kind = kind;
    params.axes = {{2, 1}, {2, 1}};
    const TestTensor input = TestTensor::copy_of(hard_tensor(type, x, random), random);
    std::vector<TestTensor> strided;
    std::vector<TensorArg> outputs;
    strided.reserve(results.size());
    for (const auto& [dtype, dims] : results)
      outputs.push_back(strided.emplace_back(TestTensor::copy_of(hard_tensor(dtype, dims, random), random)).arg);
    const auto kernel = make_kernel("pool_elements", encode_params(params));
    return static_cast<bool>(kernel->check(std::vector{input.arg}, outputs));
  };
  const DType f = DType::f32, i = DType::i64;
  EXPECT_TRUE(checks(PoolKind::maximum, f, {3, 4, 5}, {{f, {3, 3, 4}}, {i, {3, 3, 4}}}));
  EXPECT_TRUE(checks(PoolKind::maximum, DType::i8, {3, 4, 5}, {{DType::i8, {3, 3, 4}}}));
  EXPECT_FALSE(checks(PoolKind::average, DType::i8, {3, 4, 5}, {{DType::i8, {3, 3, 4}}}));
  EXPECT_FALSE(checks(PoolKind::average, f, {3, 4, 5}, {{f, {3, 3, 4}}, {i, {3, 3, 4}}}));
  EXPECT_FALSE(checks(PoolKind::maximum, DType::boolean, {3, 4, 5}, {{DType::boolean, {3, 3, 4}}}));
  EXPECT_FALSE(checks(PoolKind::maximum, f, {3, 4, 5}, {{DType::f64, {3, 3, 4}}}));
  EXPECT_FALSE(checks(PoolKind::maximum, f, {3, 4, 5}, {{f, {3, 3, 4}}, {DType::i32, {3, 3, 4}}}));
  EXPECT_FALSE(checks(PoolKind::maximum, f, {3, 4, 5}, {{f, {3, 3, 4}}, {i, {3, 3, 5}}}));
  EXPECT_FALSE(checks(PoolKind::maximum, f, {3, 4, 5}, {{f, {2, 3, 4}}}));
  EXPECT_FALSE(checks(PoolKind::maximum, f, {5}, {{f, {4}}}));
}

}  // namespace
}  // namespace lathe::cpu
