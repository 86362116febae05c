// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/elementwise.h"

#include <bit>

#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
namespace {

using elementwise::Function;

// Dims that broadcast to `dims`: some of them 1, leading ones left out.
Dims narrowed(const Dims& dims, std::mt19937& random) {
  if (pick_between(random, 0, 1)) return dims;
  Dims result(dims.begin() + static_cast<std::ptrdiff_t>(pick_between(random, 0, static_cast<int64_t>(dims.size()))),
              dims.end());
  for (int64_t& dim : result)
    if (pick_between(random, 0, 1)) dim = 1;
  return result;
}

Dims random_dims(std::mt19937& random) {
  Dims dims;
  for (int64_t rank = pick_between(random, 0, 3); rank > 0; --rank) dims.push_back(pick_between(random, 1, 6));
  if (!dims.empty() && pick_between(random, 0, 3) == 0) dims.back() = pick_between(random, 250, 600);
  return dims;
}

// Runs what the plain evaluation takes of an op on every type; counts it.
int compare_on_all_types(Function function, int64_t x, int64_t y, const Attributes& attributes, size_t inputs,
                         std::mt19937& random) {
  int taken = 0;
  for (const DType type : kAllTypes)
    for (int repeat = 0; repeat < 4; ++repeat) {
      const Dims dims = random_dims(random);
      std::vector<Tensor> tensors = {hard_tensor(type, inputs == 1 ? dims : narrowed(dims, random), random)};
      if (inputs == 2) tensors.push_back(hard_tensor(type, narrowed(dims, random), random));
      if (!run_op(attributes, tensors, 1)) break;
      compare_with_evaluation("elementwise", {static_cast<int64_t>(function), x, y}, attributes, tensors, random);
      if (::testing::Test::HasFatalFailure()) return taken;
      ++taken;
    }
  return taken;
}

TEST(Elementwise, UnaryFunctionsAreTheEvaluation) {
  std::mt19937 random(51);
  const auto compare = [&](Function function, UnaryOp op) {
    UnaryAttrs attrs;
    attrs.op = op;
    EXPECT_GT(compare_on_all_types(function, 1, 1, attrs, 1, random), 0);
  };
#define LATHE_UNARY(name, traits, formula, integers) compare(Function::name, UnaryOp::name);
#include "base/scalars.def"
  UnaryAttrs one_side;
  one_side.op = UnaryOp::is_inf;
  one_side.detect_negative = false;
  EXPECT_GT(compare_on_all_types(Function::is_inf, 0, 1, one_side, 1, random), 0);
}

TEST(Elementwise, BinaryFunctionsAreTheEvaluation) {
  std::mt19937 random(52);
  const auto compare = [&](Function function, ElementwiseOp op) {
    ElementwiseAttrs attrs;
    attrs.op = op;
    EXPECT_GT(compare_on_all_types(function, 0, 0, attrs, 2, random), 0);
  };
#define LATHE_BINARY(name, traits, formula, integers) compare(Function::name, ElementwiseOp::name);
#include "base/scalars.def"
}

TEST(Elementwise, PowersOfMixedTypesAreTheEvaluation) {
  std::mt19937 random(53);
  ElementwiseAttrs attrs;
  attrs.op = ElementwiseOp::pow;
  for (const DType base : kAllTypes)
    for (const DType exponent : kAllTypes) {
      if (base == DType::boolean || exponent == DType::boolean) continue;
      const std::vector<Tensor> inputs = {hard_tensor(base, {3, 5}, random), hard_tensor(exponent, {5}, random)};
      compare_with_evaluation("elementwise", {static_cast<int64_t>(Function::pow), 0, 0}, attrs, inputs, random);
    }
}

TEST(Elementwise, CastsAreTheEvaluation) {
  std::mt19937 random(54);
  for (const DType from : kAllTypes)
    for (const DType to : kAllTypes) {
      CastAttrs attrs;
      attrs.to = to;
      compare_with_evaluation("elementwise", {static_cast<int64_t>(Function::cast), 0, 0}, attrs,
                              {hard_tensor(from, {4, 130}, random)}, random);
    }
}

TEST(Elementwise, SelectionIsTheEvaluation) {
  std::mt19937 random(55);
  for (int repeat = 0; repeat < 20; ++repeat)
    for (const DType type : kAllTypes) {
      const Dims dims = random_dims(random);
      const std::vector<Tensor> inputs = {hard_tensor(DType::boolean, narrowed(dims, random), random),
                                          hard_tensor(type, narrowed(dims, random), random),
                                          hard_tensor(type, narrowed(dims, random), random)};
      compare_with_evaluation("elementwise", {static_cast<int64_t>(Function::select), 0, 0}, SelectAttrs(), inputs,
                              random);
    }
}

TEST(Elementwise, ClippedIntegersAreTheEvaluation) {
  std::mt19937 random(56);
  ActivationAttrs attrs;
  attrs.op = ActivationOp::clip;
  attrs.alpha = -2;
  attrs.beta = 5;
  for (const DType type : {DType::i8, DType::i16, DType::i32, DType::i64})
    compare_with_evaluation("elementwise", {static_cast<int64_t>(Function::clip_integers), -2, 5}, attrs,
                            {hard_tensor(type, {300}, random)}, random);
  for (const DType type : {DType::u8, DType::u16, DType::u32, DType::u64})
    compare_with_evaluation("elementwise", {static_cast<int64_t>(Function::clip_integers), 0, 5}, attrs,
                            {hard_tensor(type, {300}, random)}, random);
}

// A tensor for each quantised operand: one number, one for each channel, or one for each element, as blocks have them.
std::vector<Dims> scale_dims(const Dims& dims) { return {{}, {dims[0], 1}, dims}; }

Tensor random_scale(DType type, const Dims& dims, std::mt19937& random) {
  Tensor scale = *Tensor::allocate(type, dims);
  std::uniform_real_distribution<double> exponent(-6, 2);
  std::vector<double> values(static_cast<size_t>(scale.volume()));
  for (double& value : values) value = std::exp2(exponent(random));
  write_doubles(values, 0, scale);
  return scale;
}

TEST(Elementwise, QuantisationIsTheEvaluation) {
  std::mt19937 random(58);
  const Dims dims = {7, 300};
  for (const DType from : {DType::f32, DType::f16, DType::bf16, DType::f64})
    for (const DType to : {DType::i8, DType::u8, DType::i16, DType::u16})
      for (const Dims& scales : scale_dims(dims))
        for (const bool zero_point : {false, true}) {
          QuantizeAttrs attrs;
          attrs.to = to;
          const int64_t high = to == DType::i8 ? 127 : to == DType::u8 ? 255 : to == DType::i16 ? 32767 : 65535;
          const int64_t low = to == DType::i8 ? -128 : to == DType::i16 ? -32768 : 0;
          std::vector<Tensor> inputs = {hard_tensor(from, dims, random), random_scale(from, scales, random)};
          if (zero_point) inputs.push_back(hard_tensor(to, scales, random));
          compare_with_evaluation("elementwise", {static_cast<int64_t>(Function::quantize), low, high}, attrs, inputs,
                                  random);
        }
}

TEST(Elementwise, DequantisationIsTheEvaluation) {
  std::mt19937 random(59);
  const Dims dims = {7, 300};
  for (const DType from : {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32})
    for (const DType scale : {DType::f32, DType::f16, DType::bf16, DType::f64})
      for (const DType to : {DType::f32, DType::f16, DType::bf16, DType::f64})
        for (const Dims& scales : scale_dims(dims))
          for (const bool zero_point : {false, true}) {
            DequantizeAttrs attrs;
            attrs.to = to;
            std::vector<Tensor> inputs = {hard_tensor(from, dims, random), random_scale(scale, scales, random)};
            if (zero_point) inputs.push_back(hard_tensor(from, scales, random));
            compare_with_evaluation("elementwise", {static_cast<int64_t>(Function::dequantize), 0, 0}, attrs, inputs,
                                    random);
          }
}

TEST(Elementwise, ActivationsAreTheEvaluation) {
  std::mt19937 random(60);
  const auto compare = [&](Function function, const Attributes& attributes, std::vector<int64_t> params, int inputs) {
    for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      std::vector<Tensor> tensors = {hard_tensor(type, {5, 300}, random)};
      if (inputs == 2) tensors.push_back(hard_tensor(type, {5, 1}, random));
      const Result<std::vector<Tensor>> expected = run_op(attributes, tensors, 1);
      ASSERT_TRUE(expected);
      std::vector<TestTensor> strided;
      std::vector<TensorArg> args;
      strided.reserve(2);
      for (const Tensor& tensor : tensors)
        args.push_back(strided.emplace_back(TestTensor::copy_of(tensor, random)).arg);
      TestTensor output = TestTensor::copy_of(*Tensor::allocate(type, {5, 300}), random);
      params.insert(params.begin(), static_cast<int64_t>(function));
      run_kernel(*make_kernel("elementwise", params), args, {output.arg}, 1);
      params.erase(params.begin());
      expect_close(output.checked_content(), (*expected)[0], to_text(attributes));
    }
  };
  const auto compare_activation = [&](Function function, ActivationOp op) {
    ActivationAttrs attrs;
    attrs.op = op;
    attrs.alpha = 0.7;
    attrs.beta = 1.3;
    compare(function, attrs, {std::bit_cast<int64_t>(attrs.alpha), std::bit_cast<int64_t>(attrs.beta)}, 1);
  };
#define LATHE_ACTIVATION(name, parameters, formula) compare_activation(Function::name, ActivationOp::name);
#include "base/scalars.def"
  compare(Function::prelu, PreluAttrs(), {0, 0}, 2);
}

TEST(Elementwise, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("elementwise");
  for (const std::vector<int64_t>& params :
       std::vector<std::vector<int64_t>>{{}, {0, 0, 0}, {-1, 0, 0}, {1, 0}, {1000, 0, 0}, {1, 0, 0, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  std::mt19937 random(57);
  const auto checks = [&](Function function, std::initializer_list<DType> in, DType out, const Dims& dims = {4}) {
    std::vector<TestTensor> tensors;
    std::vector<TensorArg> args;
    tensors.reserve(in.size());
    for (const DType type : in)
      args.push_back(tensors.emplace_back(TestTensor::copy_of(hard_tensor(type, dims, random), random)).arg);
    TestTensor output = TestTensor::copy_of(hard_tensor(out, {4}, random), random);
    return static_cast<bool>(
        make_kernel("elementwise", {static_cast<int64_t>(function), 0, 0})->check(args, std::vector{output.arg}));
  };
  EXPECT_TRUE(checks(Function::add, {DType::i32, DType::i32}, DType::i32));
  EXPECT_FALSE(checks(Function::add, {DType::i32, DType::i64}, DType::i32));
  EXPECT_FALSE(checks(Function::add, {DType::i32}, DType::i32));
  EXPECT_FALSE(checks(Function::add, {DType::i32, DType::i32}, DType::i32, {3}));
  EXPECT_TRUE(checks(Function::quantize, {DType::f32, DType::f32, DType::u8}, DType::u8));
  EXPECT_FALSE(checks(Function::quantize, {DType::f32, DType::f32, DType::i8}, DType::u8));
  EXPECT_FALSE(checks(Function::quantize, {DType::f32, DType::f16}, DType::u8));
  EXPECT_FALSE(checks(Function::quantize, {DType::f32}, DType::u8));
  EXPECT_FALSE(checks(Function::quantize, {DType::f32, DType::f32}, DType::i32));
  EXPECT_TRUE(checks(Function::dequantize, {DType::i32, DType::f32}, DType::f16));
  EXPECT_FALSE(checks(Function::dequantize, {DType::i64, DType::f32}, DType::f32));
  EXPECT_FALSE(checks(Function::dequantize, {DType::u8, DType::f32, DType::i8}, DType::f32));
  EXPECT_FALSE(checks(Function::less, {DType::i32, DType::i32}, DType::i32));
  EXPECT_FALSE(checks(Function::bitwise_and, {DType::f32, DType::f32}, DType::f32));
  EXPECT_FALSE(checks(Function::exp, {DType::i32}, DType::i32));
  EXPECT_FALSE(checks(Function::select, {DType::i32, DType::i32, DType::i32}, DType::i32));
}

}  // namespace
}  // namespace lathe::cpu
