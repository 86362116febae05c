// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "ops/rules.h"

namespace lathe::cuda {

const Tactic& pointwise_tactic();

namespace {

class Pointwise : public testing::Test {
 protected:
  void expect(std::string_view program, std::vector<Operand> operands, std::vector<Operand> outputs,
              const CheckOptions& options = {}) {
    const Problem problem = pointwise_problem(program, std::move(operands), std::move(outputs));
    const Result<> result = check_first(test_backend(), pointwise_tactic(), problem, options);
    EXPECT_TRUE(result) << result.error().message;
  }
};

constexpr std::string_view kAdd = "in=2; r2=add r0 r1; out r2";

TEST_F(Pointwise, MixesLayouts) {
  const Dims dims = {2, 6, 5, 7};
  expect(kAdd, {operand(DType::f32, dims), operand(DType::f32, dims, Layout::channels_last)},
         {operand(DType::f32, dims, Layout::channels_last)});
  expect(kAdd, {strided_operand(DType::f32, {9, 16}, {20, 1}), operand(DType::f32, {9, 16})},
         {strided_operand(DType::f32, {9, 16}, {17, 1})});
}

// Tensors that are contiguous along another dimension than the output pass through shared memory.
TEST_F(Pointwise, Tiles) {
  const Dims dims = {2, 70, 9, 11};
  constexpr std::string_view kProgram = "in=4; r4=mul r0 r1; r5=add r4 r2; r6=mul r5 r3; out r6";
  for (const DType type : {DType::f32, DType::f16, DType::bf16})
    for (const Layout layout : {Layout::linear, Layout::channels_last}) {
      const Layout other = layout == Layout::linear ? Layout::channels_last : Layout::linear;
      const Problem problem = pointwise_problem(kProgram,
                                                {operand(type, dims, other), operand(DType::f32, {70, 1, 1}),
                                                 operand(DType::f16, dims, layout), operand(DType::i8, dims, other)},
                                                {operand(type, dims, layout)});
      EXPECT_EQ(configs_of(pointwise_tactic(), problem).front().text, "tiles");
      const Result<> checked = check_tactic(test_backend(), pointwise_tactic(), problem);
      EXPECT_TRUE(checked) << checked.error().to_string();
    }
}

// Quotients in the middle between two levels, and floats beside them; infinities, which the store bounds where nothing
// is added to levels; and what is no number, where levels are stored.
TEST_F(Pointwise, LevelsAreThoseOfTheQuotient) {
  for (const float scale : {0.040726297f, 0.3f, 0.25f, 1.7e-5f})
    for (const auto& [zero, type] : {std::pair(-3, DType::i8), {0, DType::i8}, {0, DType::u8}, {117, DType::u8}}) {
      std::vector<float> x = {HUGE_VALF, -HUGE_VALF, 0.0f, -0.0f, 1e30f, -1e30f, 1e-40f};
      for (float middle = -300.5f; middle < 300; ++middle)
        for (float at : {middle * scale, std::nextafter(middle * scale, -HUGE_VALF),
                         std::nextafter(middle * scale, 0.0f), std::nextafter(middle * scale, HUGE_VALF)})
          x.push_back(at);
      const std::string levels =
          fmt::format("in=1; r1=constant {}; r2=div r0 r1; r3=round r2; r4=affine r3 1 {}; r5=clip r4 {}; ", scale,
                      zero, type == DType::i8 ? "-128 127" : "0 255");
      const auto expect_levels = [&](const std::string& program, DType result) {
        const Dims dims = {static_cast<int64_t>(x.size())};
        CheckOptions options;
        options.tolerance = 0;
        options.operands = {*Tensor::allocate(DType::f32, dims)};
        std::ranges::copy(x, options.operands[0].mutable_as<float>());
        expect(levels + program, {operand(DType::f32, dims)}, {operand(result, dims)}, options);
      };
      expect_levels(fmt::format("r6=affine r5 {} -0; out r6", scale), DType::f32);
      expect_levels("out r5", type);
    }
}

TEST_F(Pointwise, TilesOfPermutedDims) {
  expect(kAdd, {strided_operand(DType::f16, {5, 40, 33}, {40, 1, 200}), operand(DType::f16, {5, 40, 33})},
         {operand(DType::f32, {5, 40, 33})});
  // Two that cross it along different dimensions.
  expect(kAdd,
         {strided_operand(DType::f16, {34, 40, 33}, {40, 1, 34 * 40}),
          strided_operand(DType::f16, {34, 40, 33}, {1, 34, 34 * 40})},
         {operand(DType::f16, {34, 40, 33})});
}

TEST_F(Pointwise, TilesOfSymbolicDims) {
  CheckOptions options;
  options.symbols = {3, 21};
  const Shape dims = {Expr::symbol(0), 16, Expr::symbol(1)};
  const auto make = [&](Layout layout) { return symbolic_operand(DType::f16, dims, options.symbols, layout); };
  const Problem problem =
      pointwise_problem(kAdd, {make(Layout::linear), make(Layout::channels_last)}, {make(Layout::channels_last)});
  EXPECT_EQ(configs_of(pointwise_tactic(), problem).front().text, "tiles");
  expect(kAdd, problem.operands, problem.outputs, options);
}

// A number around what an operand holds, in every dimension, in some, in one where vectors run.
TEST_F(Pointwise, OperandsWithPadding) {
  const Dims dims = {2, 16, 9, 11};
  for (const DType type : {DType::f32, DType::f16, DType::bf16})
    for (const Layout layout : {Layout::linear, Layout::channels_last}) {
      const Operand out = operand(type, dims, layout);
      expect("in=1; out r0", {padded_operand(operand(type, {2, 16, 6, 7}, layout), {0, 0, 2, 3}, -1.5f)}, {out});
      expect("in=1; r1=silu r0; out r1", {padded_operand(operand(type, {1, 8, 6, 8}, layout), {1, 8, 0, 3}, 0)}, {out});
      expect(kAdd, {padded_operand(operand(type, {2, 9, 9, 11}, layout), {0, 3, 0, 0}, 2), operand(type, dims, layout)},
             {out});
      expect("in=3; r3=mul r0 r1; r4=add r3 r2; out r4",
             {padded_operand(operand(type, {2, 16, 1, 1}, layout), {0, 0, 4, 10}, 1), operand(DType::f32, {16, 1, 1}),
              operand(type, dims, layout == Layout::linear ? Layout::channels_last : Layout::linear)},
             {out});
    }
}

TEST_F(Pointwise, PaddingWithWhatIsNoNumber) {
  for (const float value : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()})
    expect("in=1; r1=sigmoid r0; out r1", {padded_operand(operand(DType::f32, {3, 5}), {2, 1}, value)},
           {operand(DType::f32, {6, 40})});
}

// One operand begins where the other does not, and one repeats its elements along a dimension.
TEST_F(Pointwise, PaddingThatDiffers) {
  const Dims dims = {4, 6, 40};
  Operand repeated = padded_operand(strided_operand(DType::f16, {4, 6, 40}, {0, 40, 1}), {0, 2, 0}, 3);
  repeated.dims[1] = repeated.opt_dims[1] = 4;
  expect(kAdd, {padded_operand(operand(DType::f16, {4, 6, 24}), {0, 0, 16}, 1), std::move(repeated)},
         {operand(DType::f16, dims)});
}

TEST_F(Pointwise, PaddingOfSymbolicDims) {
  CheckOptions options;
  options.symbols = {3, 21};
  const Expr n = Expr::symbol(0), m = Expr::symbol(1);
  for (const Layout layout : {Layout::linear, Layout::channels_last})
    expect(kAdd,
           {padded_operand(symbolic_operand(DType::f16, {n, 16, m}, options.symbols, layout), {0, 0, 5}, 4),
            symbolic_operand(DType::f16, {n, 16, m + 8}, options.symbols, layout)},
           {symbolic_operand(DType::f16, {n, 16, m + 8}, options.symbols, layout)}, options);
}

TEST_F(Pointwise, ScalarsAndNothing) {
  expect(kAdd, {operand(DType::f32, {}), operand(DType::f32, {})}, {operand(DType::f32, {})});
  expect(kAdd, {operand(DType::f32, {0, 4}), operand(DType::f32, {4})}, {operand(DType::f32, {0, 4})});
  expect("in=0; r0=constant 2.5; out r0", {}, {operand(DType::f16, {3, 5})});
}

TEST_F(Pointwise, SymbolicDims) {
  CheckOptions options;
  options.symbols = {3, 21};
  const Shape dims = {Expr::symbol(0), 16, Expr::symbol(1)};
  const auto make = [&](const Shape& shape, Layout layout = Layout::linear) {
    return symbolic_operand(DType::f32, shape, options.symbols, layout);
  };
  expect(kAdd, {make(dims), make({16, 1})}, {make(dims)}, options);
  expect(kAdd, {make(dims, Layout::channels_last), make({16, 1})}, {make(dims, Layout::channels_last)}, options);
}

TEST_F(Pointwise, EveryConfiguration) {
  const Problem problem = pointwise_problem(kAdd, {operand(DType::f16, {2, 3000}), operand(DType::f32, {2, 1})},
                                            {operand(DType::f16, {2, 3000})});
  for (const int64_t unroll : {1, 2, 4}) {
    const Result<> result =
        check_kernel(test_backend(), pointwise_tactic(), problem, {.text = "", .choice = unroll}, {});
    EXPECT_TRUE(result) << result.error().message;
  }
  // Tensors that leave no thread without work have more than one.
  EXPECT_EQ(configs_of(pointwise_tactic(), problem).size(), 1u);
  const Operand large = operand(DType::f32, {1024, 1024});
  EXPECT_GT(configs_of(pointwise_tactic(), pointwise_problem(kAdd, {large, large}, {large})).size(), 1u);
}

// Every instruction, on random values and all pairs of special ones. A program has room for eight.
TEST_F(Pointwise, EveryInstruction) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {0.0f,   -0.0f, 1.0f,      -1.0f,      0.5f,
                                -2.5f,  88.0f, -88.0f,    200.0f,     -200.0f,
                                1e-30f, 1e30f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  constexpr size_t kCount = std::size(kSpecial);
  std::vector<float> a, b;
  for (size_t i = 0; i < kCount * kCount; ++i) {
    a.push_back(kSpecial[i / kCount]);
    b.push_back(kSpecial[i % kCount]);
  }
  std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, 4);
  for (int i = 0; i < 2000; ++i)
    for (auto* list : {&a, &b}) list->push_back(normal(generator));
  const Dims dims = {static_cast<int64_t>(a.size())};
  CheckOptions options;
  options.tolerance = 2e-6;
  options.operands = {Tensor::from<float>(dims, a), Tensor::from<float>(dims, b)};
  std::string code, outputs;
  int instructions = 0;
  const auto flush = [&] {
    const std::string program = "in=3; " + code + "out" + outputs;
    SCOPED_TRACE(program);
    expect(program, std::vector<Operand>(3, operand(DType::f32, dims)),
           std::vector<Operand>(static_cast<size_t>(instructions), operand(DType::f32, dims)), options);
    code = outputs = "";
    instructions = 0;
  };
  for (int number = 0; number < 256; ++number) {
    const OpcodeInfo* info = opcode_info(number);
    if (!info) continue;
    code += fmt::format("r{}={}", 3 + instructions, info->name);
    outputs += fmt::format(" r{}", 3 + instructions);
    for (int i = 0; i < info->operands; ++i) code += fmt::format(" r{}", i);
    for (int i = 0; i < info->immediates; ++i) code += i == 0 ? " 0.3" : " 0.7";
    code += "; ";
    if (++instructions == kMaxProgramOutputs) flush();
  }
  if (instructions > 0) flush();
}

// Of every number of 16 bits, to little more than the rounding alone: a cheaper formula than that of f32.
TEST_F(Pointwise, GelusOf16Bits) {
  struct Type {
    DType dtype;
    int mantissa, least_exponent;
    double ulps;
  };
  for (const Type& type : {Type{DType::f16, 10, -14, 0.55}, Type{DType::bf16, 7, -126, 0.52}}) {
    std::vector<double> values;
    const double largest = type.dtype == DType::f16 ? 65504 : 1e30, least = std::ldexp(1.0, type.least_exponent);
    for (double a = least; a <= largest; a += std::ldexp(1.0, std::ilogb(a) - type.mantissa))
      for (const int sign : {1, -1}) values.push_back(sign * a);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    values.insert(values.end(), {0, kInfinity, std::numeric_limits<double>::quiet_NaN()});
    const Dims dims = {static_cast<int64_t>(values.size())};
    const Problem problem =
        pointwise_problem("in=1; r1=gelu_erf r0; out r1", {operand(type.dtype, dims)}, {operand(type.dtype, dims)});
    const Config config = configs_of(pointwise_tactic(), problem).at(0);
    Tensor in = *Tensor::allocate(type.dtype, dims);
    from_doubles(values, in);
    const auto got = run_kernel(test_backend(), pointwise_tactic(), problem, config, {}, {in}, {});
    ASSERT_TRUE(got) << got.error().to_string();
    const std::vector<double> results = to_doubles((*got)[0]);
    constexpr double kLeast = 2e-37;  // 13 times the smallest power of two that the device's function has
    double worst = 0;
    for (size_t i = 0; i < values.size() - 2; ++i) {
      const double a = values[i], want = a / 2 * std::erfc(-a / std::sqrt(2.0));
      const double ulp =
          std::ldexp(1.0, std::max(want == 0 ? -1000 : std::ilogb(want), type.least_exponent) - type.mantissa);
      worst = std::max(worst, (std::abs(results[i] - want) - kLeast) / ulp);
    }
    EXPECT_LE(worst, type.ulps) << name_of(type.dtype);
    EXPECT_EQ(results[values.size() - 2], kInfinity);
    EXPECT_TRUE(std::isnan(results.back()));
  }
}

// Those that are rounded to 8 bits are hardly more exact before: numbers near the middle of two go either way.
TEST_F(Pointwise, GelusOf8Bits) {
  constexpr int kMantissa = 3, kLeastExponent = -6;  // of e4m3
  constexpr double kLargest = 448, kUlps = 0.501;
  std::vector<double> values = {0, std::numeric_limits<double>::quiet_NaN()};
  for (double a = std::ldexp(1.0, -14); a <= 2 * kLargest; a += std::ldexp(1.0, std::ilogb(a) - 10))
    for (const int sign : {1, -1}) values.push_back(sign * a);
  const Dims dims = {static_cast<int64_t>(values.size())};
  const Problem problem = pointwise_problem("in=1; r1=gelu_erf r0; r2=round_e4m3 r1; out r2",
                                            {operand(DType::f16, dims)}, {operand(DType::f8e4m3fn, dims)});
  Tensor in = *Tensor::allocate(DType::f16, dims);
  from_doubles(values, in);
  const auto got = run_kernel(test_backend(), pointwise_tactic(), problem,
                              configs_of(pointwise_tactic(), problem).at(0), {}, {in}, {});
  ASSERT_TRUE(got) << got.error().to_string();
  const std::vector<double> results = to_doubles((*got)[0]);
  EXPECT_EQ(results[0], 0);
  EXPECT_TRUE(std::isnan(results[1]));
  double worst = 0;
  for (size_t i = 2; i < values.size(); ++i) {
    const double a = values[i], want = std::min(a / 2 * std::erfc(-a / std::sqrt(2.0)), kLargest);
    const int exponent = want == 0 ? kLeastExponent : std::max(std::ilogb(want), kLeastExponent);
    worst = std::max(worst, std::abs(results[i] - want) / std::ldexp(1.0, exponent - kMantissa));
  }
  EXPECT_LE(worst, kUlps);
}

TEST_F(Pointwise, RefusesWhatF32CannotHold) {
  const auto refusal = [](DType in, DType out) {
    return refusal_of(pointwise_tactic(),
                      pointwise_problem(kAdd, {operand(in, {2}), operand(in, {2})}, {operand(out, {2})}));
  };
  EXPECT_FALSE(refusal(DType::f32, DType::f32));
  EXPECT_TRUE(refusal(DType::f64, DType::f32));
  EXPECT_TRUE(refusal(DType::i64, DType::f32));
  EXPECT_TRUE(refusal(DType::f32, DType::i8));
}

}  // namespace
}  // namespace lathe::cuda
