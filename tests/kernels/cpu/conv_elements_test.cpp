// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv_elements/conv_elements.h"

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/evaluation_check.h"
#include "kernels/cpu/isa_levels.h"

namespace lathe::cpu {
const Tactic& conv_elements_tactic();

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::i8,  DType::u8,  DType::i16,
                            DType::u16, DType::i32, DType::i64, DType::u32, DType::u64};

// Numbers whose sums of products are exact in every type.
Tensor random_numbers(DType type, const Dims& dims, std::mt19937& random) {
  const bool has_sign = class_of(type) != DTypeClass::unsigned_int;
  Tensor tensor = *Tensor::allocate(type, dims);
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  for (double& value : values) value = static_cast<double>(pick_between(random, has_sign ? -9 : 0, 9));
  from_doubles(values, tensor);
  return tensor;
}

Operand operand_of(const Tensor& tensor) {
  Operand operand;
  operand.dtype = tensor.dtype();
  operand.dims = to_shape(tensor.dims());
  operand.opt_dims = tensor.dims();
  operand.strides = dense_strides(operand.dims, Layout::linear);
  return operand;
}

// Asks the tactic, and runs its kernel. `inputs`: x, weights and a bias or nothing.
void compare(const Attributes& attributes, std::vector<Tensor> inputs, std::mt19937& random) {
  const std::string what = to_text(attributes);
  const Result<std::vector<Tensor>> expected = run_op(attributes, inputs, 1);
  ASSERT_TRUE(expected) << what << expected.error().message;
  Tensor result = *Tensor::allocate((*expected)[0].dtype(), (*expected)[0].dims());
  Problem problem;
  problem.attributes = &attributes;
  problem.inputs = {operand_of(inputs[0]), operand_of(inputs[1])};
  problem.outputs = {operand_of(result)};
  Program program{1, {}, {0}};
  if (inputs.size() > 2) {
    Dims dims(result.dims().size(), 1);  // the kernel's bias runs along dimension 1
    dims[1] = inputs[2].dims()[0];
    inputs[2] = inputs[2].reshaped(dims);
    problem.operands = {operand_of(inputs[2])};
    program = program_of("in=2; r2=add r0 r1; out r2");
  }
  problem.program = program;
  const Matched matched = conv_elements_tactic().match(problem);
  ASSERT_TRUE(matched) << what << ": " << matched.error().reason;
  const Result<Emission> emission = (*matched)->emit((*matched)->configs()[0]);
  ASSERT_TRUE(emission);
  std::vector<TestTensor> strided;
  std::vector<TensorArg> args;
  strided.reserve(3);
  for (const Tensor& tensor : inputs) args.push_back(strided.emplace_back(TestTensor::copy_of(tensor, random)).arg);
  TestTensor output = TestTensor::copy_of(std::move(result), random);
  const auto kernel = make_kernel("conv_elements", emission->params, emission->with_program ? &program : nullptr);
  run_kernel(*kernel, args, {output.arg}, pick_between(random, 0, 1) ? 1 : 3);
  if (!::testing::Test::HasFatalFailure()) expect_same(output.checked_content(), (*expected)[0], what);
}

template <class Attrs>
Attrs random_attributes(size_t spatial, int64_t groups, std::mt19937& random) {
  Attrs attrs;
  attrs.groups = groups;
  const int64_t mode = pick_between(random, 0, 5);
  if (mode == 0) attrs.padding_mode = PaddingMode::same_upper;
  if (mode == 1) attrs.padding_mode = PaddingMode::same_lower;
  for (size_t i = 0; i < spatial; ++i) {
    attrs.stride.push_back(pick_between(random, 1, 3));
    attrs.dilation.push_back(pick_between(random, 1, 2));
    attrs.pads_begin.push_back(pick_between(random, 0, 2));
    attrs.pads_end.push_back(pick_between(random, 0, 2));
  }
  return attrs;
}

struct Channels {
  int64_t groups, inputs, outputs;  // of a group
};

Channels random_channels(int64_t repeat, std::mt19937& random) {
  if (repeat % 5 == 0) return {pick_between(random, 2, 300), 1, 1};  // each channel is a group
  if (repeat % 11 == 1) return {1, pick_between(random, 60, 300), pick_between(random, 60, 600)};
  return {pick_between(random, 1, 3), pick_between(random, 1, 5), pick_between(random, 1, 70)};
}

TEST(ConvElements, IsTheEvaluation) {
  std::mt19937 random(301);
  for (int repeat = 0; repeat < 22; ++repeat)
    for (const DType type : kTypes) {
      const auto spatial = static_cast<size_t>(pick_between(random, 1, repeat % 4 ? 2 : 4));
      const Channels c = random_channels(repeat, random);
      const auto attrs = random_attributes<ConvolutionAttrs>(spatial, c.groups, random);
      Dims x = {pick_between(random, 1, 2), c.groups * c.inputs}, w = {c.groups * c.outputs, c.inputs};
      for (size_t i = 0; i < spatial; ++i) {
        w.push_back(pick_between(random, 1, 3));
        x.push_back(pick_between(random, (w.back() - 1) * 2 + 1, spatial > 2 ? 6 : 12));
      }
      if (repeat == 3) x[0] = 0;
      const bool mixed = size_of(type) == 1 && pick_between(random, 0, 1);
      const DType other = !mixed ? type : type == DType::i8 ? DType::u8 : DType::i8;
      std::vector<Tensor> inputs = {random_numbers(type, x, random), random_numbers(other, w, random)};
      if (pick_between(random, 0, 1)) inputs.push_back(random_numbers(sum_dtype(type), {w[0]}, random));
      compare(attrs, std::move(inputs), random);
    }
}

TEST(ConvElements, TransposedIsTheEvaluation) {
  std::mt19937 random(302);
  for (int repeat = 0; repeat < 44; ++repeat)
    for (const DType type : {DType::f32, DType::f64}) {
      const auto spatial = static_cast<size_t>(pick_between(random, 1, repeat % 4 ? 2 : 4));
      const Channels c = random_channels(repeat, random);
      auto attrs = random_attributes<DeconvolutionAttrs>(spatial, c.groups, random);
      Dims x = {pick_between(random, 1, 2), c.groups * c.inputs}, w = {c.groups * c.inputs, c.outputs};
      const bool sized = pick_between(random, 0, 3) == 0, padded = pick_between(random, 0, 1);
      for (size_t i = 0; i < spatial; ++i) {
        w.push_back(pick_between(random, 1, 4));
        x.push_back(pick_between(random, 3, spatial > 2 ? 4 : 9));
        if (sized) attrs.output_shape.push_back(x.back() * attrs.stride[i] - pick_between(random, 0, 2));
        if (padded) attrs.output_padding.push_back(pick_between(random, 0, attrs.stride[i] - 1));
        if (sized) attrs.pads_begin[i] = attrs.pads_end[i] = 0;
      }
      std::vector<Tensor> inputs = {random_numbers(type, x, random), random_numbers(type, w, random)};
      if (pick_between(random, 0, 1)) inputs.push_back(random_numbers(type, {w[1] * c.groups}, random));
      compare(attrs, std::move(inputs), random);
    }
}

TEST(ConvElements, NegativePaddingCrops) {
  std::mt19937 random(303);
  for (const DType type : {DType::f32, DType::i8}) {
    ConvolutionAttrs attrs;
    attrs.pads_begin = {-1, 2};
    attrs.pads_end = {0, -3};
    compare(attrs, {random_numbers(type, {2, 3, 9, 8}, random), random_numbers(type, {4, 3, 3, 2}, random)}, random);
  }
}

// An epilogue of several operands.
TEST(ConvElements, RunsPrograms) {
  std::mt19937 random(304);
  const Program program = program_of("in=3; r3=mul r0 r1; r4=add r3 r2; r5=relu r4; out r5");
  for (const bool transposed : {false, true}) {
    const Tensor x = random_numbers(DType::f32, {2, 6, 5, 4}, random);
    const Tensor w = random_numbers(DType::f32, transposed ? Dims{6, 3, 2, 3} : Dims{6, 3, 2, 3}, random);
    ConvolutionAttrs convolution;
    DeconvolutionAttrs deconvolution;
    convolution.groups = deconvolution.groups = 2;
    const Attributes& attrs = transposed ? static_cast<const Attributes&>(deconvolution) : convolution;
    const Tensor sums = (*run_op(attrs, std::vector<Tensor>{x, w}, 1))[0];
    const Tensor scale = random_numbers(DType::f32, {1, 6, 1, 1}, random);
    const Tensor residual = random_numbers(DType::f32, sums.dims(), random);
    Tensor expected = *Tensor::allocate(DType::f32, sums.dims());
    const int64_t area = sums.dims()[2] * sums.dims()[3];
    for (int64_t i = 0; i < sums.volume(); ++i)
      expected.mutable_as<float>()[i] =
          std::max(sums.as<float>()[i] * scale.as<float>()[i / area % 6] + residual.as<float>()[i], 0.0f);
    const ConvElementsParams params{transposed, 2, {{}, {}}};
    const TestTensor a = TestTensor::copy_of(x, random), b = TestTensor::copy_of(w, random),
                     c = TestTensor::copy_of(scale, random), d = TestTensor::copy_of(residual, random);
    TestTensor output = TestTensor::copy_of(*Tensor::allocate(DType::f32, sums.dims()), random);
    run_kernel(*make_kernel("conv_elements", encode_params(params), &program), {a.arg, b.arg, c.arg, d.arg},
               {output.arg}, 3);
    expect_same(output.checked_content(), expected, "program");
  }
}

TEST(ConvElements, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("conv_elements");
  using Axis = ConvElementsParams::Axis;
  const auto makes = [&](bool transposed, int64_t groups, std::vector<Axis> axes) {
    return static_cast<bool>(factory(Record{encode_params(ConvElementsParams{transposed, groups, std::move(axes)})}));
  };
  EXPECT_TRUE(makes(false, 1, {{1, 1, PaddingRule::upper_half, 0}}));
  EXPECT_FALSE(makes(false, 0, {{}}));
  EXPECT_FALSE(makes(false, 1, {}));
  EXPECT_FALSE(makes(false, 1, std::vector<Axis>(7)));
  EXPECT_FALSE(makes(false, 1, {{0, 1}}));
  EXPECT_FALSE(makes(false, 1, {{1, 0}}));
  EXPECT_FALSE(makes(false, 1, {{1, 1, static_cast<PaddingRule>(3)}}));
  EXPECT_FALSE(makes(false, 1, {{1, 1, PaddingRule::given, int64_t{1} << 40}}));
  EXPECT_FALSE(makes(true, 1, {{1 << 15, 1}, {1 << 15, 1}}));
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{}, {0, 1}, {2, 1, 0}, {0, 1, 1, 1, 1}})
    EXPECT_FALSE(factory(Record{params, nullptr}));

  std::mt19937 random(305);
  const auto checks = [&](const std::vector<std::pair<DType, Dims>>& inputs, DType type, const Dims& output,
                          int64_t groups = 1) {
    std::vector<TestTensor> strided;
    std::vector<TensorArg> args;
    strided.reserve(inputs.size());
    for (const auto& [dtype, dims] : inputs)
      args.push_back(strided.emplace_back(TestTensor::copy_of(hard_tensor(dtype, dims, random), random)).arg);
    const TestTensor result = TestTensor::copy_of(hard_tensor(type, output, random), random);
    const auto kernel = make_kernel("conv_elements", encode_params(ConvElementsParams{false, groups, {{}}}));
    return static_cast<bool>(kernel->check(args, std::vector{result.arg}));
  };
  const DType f = DType::f32, i8 = DType::i8;
  EXPECT_TRUE(checks({{f, {2, 4, 9}}, {f, {6, 4, 3}}}, f, {2, 6, 7}));
  EXPECT_TRUE(checks({{f, {2, 4, 9}}, {f, {6, 2, 3}}}, f, {2, 6, 7}, 2));
  EXPECT_TRUE(checks({{f, {2, 4, 9}}, {f, {6, 4, 3}}, {f, {6, 1}}}, f, {2, 6, 7}));
  EXPECT_TRUE(checks({{i8, {2, 4, 9}}, {DType::u8, {6, 4, 3}}}, DType::i32, {2, 6, 7}));
  EXPECT_FALSE(checks({{i8, {2, 4, 9}}, {i8, {6, 4, 3}}}, i8, {2, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}}, f, {2, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}, {f, {6, 4, 3}}, {f, {6}}, {f, {6}}}, f, {2, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}, {f, {6, 4, 3}}, {f, {1, 6, 7}}}, f, {2, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}, {f, {6, 4, 3}}, {DType::f64, {6, 1}}}, f, {2, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}, {DType::f64, {6, 4, 3}}}, f, {2, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}, {f, {6, 3, 3}}}, f, {2, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}, {f, {5, 4, 3}}}, f, {2, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}, {f, {6, 4, 3}}}, f, {3, 6, 7}));
  EXPECT_FALSE(checks({{f, {2, 4, 9}}, {f, {6, 4, 3}}}, f, {2, 6, 7}, 4));
  EXPECT_FALSE(checks({{f, {2, 4, 9, 1}}, {f, {6, 4, 3, 1}}}, f, {2, 6, 7, 1}));
}

// Products of channels at every level that this machine has.
TEST(ConvElements, LevelsMultiplyAlike) {
  std::mt19937 random(306);
  for (const DType lane : {DType::f32, DType::f64, DType::u32, DType::u64})
    for (const int64_t count : {1, 7, 64, 129}) {
      const Tensor x = random_numbers(lane, {count}, random), w = random_numbers(lane, {count}, random);
      Tensor expected = random_numbers(lane, {count}, random);
      Tensor start = *Tensor::allocate(lane, {count});
      std::memcpy(start.mutable_data(), expected.data(), expected.bytes());
      dispatch(lane, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
          for (int64_t i = 0; i < count; ++i) expected.mutable_as<T>()[i] += x.as<T>()[i] * w.as<T>()[i];
      });
      for (const auto& [level, multiply] : LATHE_ISA_LEVELS(multiply_channels)) {
        Tensor sums = *Tensor::allocate(lane, {count});
        std::memcpy(sums.mutable_data(), start.data(), start.bytes());
        multiply(lane, x.data(), w.data(), sums.mutable_data(), count);
        expect_same(sums, expected, std::string(level));
      }
    }
}

}  // namespace
}  // namespace lathe::cpu
