// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/resize_elements/resize_elements.h"

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
const Tactic& resize_elements_tactic();

namespace {

Operand operand_of(const Tensor& tensor) {
  Operand operand;
  operand.dtype = tensor.dtype();
  operand.dims = to_shape(tensor.dims());
  operand.opt_dims = tensor.dims();
  operand.strides = dense_strides(operand.dims, Layout::linear);
  operand.omitted = !tensor.defined();
  return operand;
}

std::vector<int64_t> params_of(const Attributes& attributes, const std::vector<Tensor>& inputs) {
  Problem problem;
  problem.attributes = &attributes;
  for (const Tensor& input : inputs) problem.inputs.push_back(input.defined() ? operand_of(input) : Operand());
  for (size_t i = 0; i < inputs.size(); ++i) problem.inputs[i].omitted = !inputs[i].defined();
  problem.outputs = {operand_of(inputs[0])};
  problem.program = {1, {}, {0}};
  const Matched matched = resize_elements_tactic().match(problem);
  EXPECT_TRUE(matched) << (matched ? "" : matched.error().reason);
  return matched ? (*matched)->emit({})->params : std::vector<int64_t>();
}

// Kernel arguments of the op's inputs: x strided, lists dense, what is omitted without dims.
struct Arguments {
  Arguments(std::vector<Tensor> op_inputs, std::mt19937& random)
      : inputs(std::move(op_inputs)), x(TestTensor::copy_of(inputs[0], random)) {
    args.push_back(x.arg);
    for (size_t i = 1; i < inputs.size(); ++i) {
      TensorArg& arg = args.emplace_back();
      if (!inputs[i].defined()) continue;
      arg.dtype = inputs[i].dtype();
      arg.rank = 1;
      arg.dims[0] = inputs[i].volume();
      arg.strides[0] = 1;
      arg.data = const_cast<void*>(inputs[i].data());
    }
  }
  std::vector<Tensor> inputs;
  TestTensor x;
  std::vector<TensorArg> args;
};

void compare(const ResizeAttrs& attrs, const std::vector<Tensor>& inputs, std::mt19937& random) {
  const std::string what = to_text(attrs);
  const Result<std::vector<Tensor>> expected = run_op(attrs, inputs, 1);
  ASSERT_TRUE(expected) << what << ": " << expected.error().message;
  const Arguments arguments(inputs, random);
  TestTensor output = TestTensor::copy_of(*Tensor::allocate((*expected)[0].dtype(), (*expected)[0].dims()), random);
  run_kernel(*make_kernel("resize_elements", params_of(attrs, inputs)), arguments.args, {output.arg},
             pick_between(random, 0, 1) ? 1 : 3);
  if (!::testing::Test::HasFatalFailure()) expect_close(output.checked_content(), (*expected)[0], what);
}

Tensor reals(DType type, const std::vector<double>& values) {
  Tensor tensor = *Tensor::allocate(type, {static_cast<int64_t>(values.size())});
  from_doubles(values, tensor);
  return tensor;
}

template <class E>
E any_of(std::mt19937& random, E last) {
  return static_cast<E>(pick_between(random, 0, static_cast<int64_t>(last)));
}

// x of `dims`, by scales or sizes of some axes.
std::vector<Tensor> resized(const Tensor& x, const ResizeAttrs& attrs, const std::vector<double>& scales, bool by_sizes,
                            std::mt19937& random) {
  std::vector<double> sizes, roi;
  for (size_t i = 0; i < attrs.axes.size(); ++i)
    sizes.push_back(std::max(1.0, std::floor(static_cast<double>(x.dims()[attrs.axes[i]]) * scales[i])));
  for (size_t i = 0; i < 2 * attrs.axes.size(); ++i)
    roi.push_back(static_cast<double>(pick_between(random, -2, 10)) / 8 + (i < attrs.axes.size() ? 0 : 0.5));
  const bool crops = attrs.coordinates == CoordinateMode::tf_crop_and_resize;
  return {x, crops ? reals(DType::f32, roi) : Tensor(), by_sizes ? Tensor() : reals(DType::f32, scales),
          by_sizes ? reals(DType::i64, sizes) : Tensor()};
}

TEST(ResizeElements, OfFloatsIsTheEvaluation) {
  std::mt19937 random(321);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const DType type = std::array{DType::f32, DType::f64, DType::f16, DType::bf16}[repeat % 4];
    ResizeAttrs attrs;
    attrs.mode = any_of(random, ResizeMode::cubic);
    attrs.coordinates = any_of(random, CoordinateMode::tf_crop_and_resize);
    attrs.nearest = any_of(random, NearestMode::ceil);
    attrs.exclude_outside = pick_between(random, 0, 3) == 0;
    attrs.antialias = pick_between(random, 0, 3) == 0;
    attrs.extrapolation = 7.5;
    attrs.cubic_a = pick_between(random, 0, 1) ? -0.75 : -0.6;
    const int64_t rank = pick_between(random, 1, 4), first = pick_between(random, 0, rank - 1);
    std::vector<double> scales;
    for (int64_t d = rank; d-- > first;) {
      attrs.axes.push_back(d);
      scales.push_back(static_cast<double>(pick_between(random, 2, 12)) / 4);
    }
    const bool by_sizes = pick_between(random, 0, 1);
    if (by_sizes) attrs.aspect = any_of(random, AspectPolicy::not_smaller);
    const Tensor x = random_integers(type, random_dims(rank, 2, 9, random), -99, 99, random);
    compare(attrs, resized(x, attrs, scales, by_sizes, random), random);
  }
}

// Weights that are sums of powers of two, so that no order of summing rounds.
TEST(ResizeElements, OfIntegersIsTheEvaluation) {
  std::mt19937 random(322);
  for (int repeat = 0; repeat < 24; ++repeat)
    for (const DType type :
         {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
      ResizeAttrs attrs;
      attrs.mode = any_of(random, ResizeMode::cubic);
      attrs.coordinates = pick_between(random, 0, 1) ? CoordinateMode::asymmetric : CoordinateMode::half_pixel;
      attrs.nearest = any_of(random, NearestMode::ceil);
      attrs.axes = {2, -1};
      const std::vector<double> scales = {std::ldexp(1.0, static_cast<int>(pick_between(random, -1, 2))), 2};
      const int64_t most = class_of(type) == DTypeClass::signed_int ? 127 : 255;  // a cubic overshoots
      const Tensor x = random_integers(type, {2, 3, 2 * pick_between(random, 1, 3), pick_between(random, 1, 40)},
                                       most - 255, most, random);
      attrs.axes[1] = 3;
      std::vector<Tensor> inputs = resized(x, attrs, scales, false, random);
      attrs.axes[1] = -1;
      compare(attrs, inputs, random);
    }
}

TEST(ResizeElements, OfBooleansIsTheEvaluation) {
  std::mt19937 random(323);
  for (int repeat = 0; repeat < 20; ++repeat) {
    ResizeAttrs attrs;
    attrs.coordinates = any_of(random, CoordinateMode::tf_crop_and_resize);
    attrs.extrapolation = repeat % 2;
    attrs.axes = {0, 1};
    const Tensor x = hard_tensor(DType::boolean, random_dims(2, 1, 9, random), random);
    compare(attrs, resized(x, attrs, {1.5, 2.25}, repeat % 3 == 0, random), random);
  }
}

TEST(ResizeElements, AllAxesAndNoElements) {
  std::mt19937 random(324);
  ResizeAttrs attrs;
  attrs.mode = ResizeMode::linear;
  const Tensor x = random_integers(DType::f32, {2, 5, 4}, -9, 9, random);
  compare(attrs, {x, Tensor(), reals(DType::f64, {1, 2, 0.75})}, random);
  compare(attrs, {x, Tensor(), Tensor(), reals(DType::i32, {1, 0, 9})}, random);
  compare(attrs,
          {random_integers(DType::f32, {2, 0, 4}, 0, 9, random), Tensor(), Tensor(), reals(DType::i32, {1, 0, 9})},
          random);
}

TEST(ResizeElements, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("resize_elements");
  const auto makes = [&](auto change) {
    ResizeElementsParams params;
    params.axes = {0, 1};
    change(params);
    return static_cast<bool>(factory(Record{encode_params(params)}));
  };
  using P = ResizeElementsParams;
  EXPECT_TRUE(makes([](P&) {}));
  EXPECT_FALSE(makes([](P& p) { p.rule.mode = static_cast<SampleRule::Mode>(3); }));
  EXPECT_FALSE(makes([](P& p) { p.rule.coordinates = static_cast<SampleRule::Coordinates>(7); }));
  EXPECT_FALSE(makes([](P& p) { p.rule.nearest = static_cast<SampleRule::Nearest>(-1); }));
  EXPECT_FALSE(makes([](P& p) { p.policy = static_cast<SizePolicy>(3); }));
  EXPECT_FALSE(makes([](P& p) { p.rule.cubic_a = HUGE_VAL; }));
  EXPECT_FALSE(makes([](P& p) { p.rule.antialias = true; }));
  EXPECT_FALSE(makes([](P& p) { p.axes = {1, 1}; }));
  EXPECT_FALSE(makes([](P& p) { p.axes = {8}; }));
  EXPECT_FALSE(factory(Record{{}, nullptr}));

  std::mt19937 random(325);
  const auto kernel_of = [&](auto change) {
    P params;
    params.axes = {1};
    change(params);
    return make_kernel("resize_elements", encode_params(params));
  };
  const Tensor x = random_integers(DType::f32, {2, 4}, 0, 9, random), one = reals(DType::f32, {2}),
               size = reals(DType::i64, {8});
  const auto checks = [&](const Kernel& kernel, const std::vector<Tensor>& inputs, DType type, const Dims& dims) {
    const Arguments arguments(inputs, random);
    const TestTensor y = TestTensor::copy_of(random_integers(type, dims, 0, 1, random), random);
    return static_cast<bool>(kernel.check(arguments.args, std::vector{y.arg}));
  };
  const auto scaled = kernel_of([](P&) {}), sized = kernel_of([](P&p) { p.by_sizes = true; }),
             cropped = kernel_of([](P&p) { p.rule.coordinates = SampleRule::Coordinates::tf_crop_and_resize; });
  const DType f = DType::f32;
  EXPECT_TRUE(checks(*scaled, {x, Tensor(), one}, f, {2, 8}));
  EXPECT_TRUE(checks(*sized, {x, Tensor(), Tensor(), size}, f, {2, 8}));
  EXPECT_TRUE(checks(*cropped, {x, reals(f, {0, 1}), one}, f, {2, 8}));
  EXPECT_FALSE(checks(*scaled, {x, Tensor(), Tensor(), size}, f, {2, 8}));
  EXPECT_FALSE(checks(*sized, {x, Tensor(), one}, f, {2, 8}));
  EXPECT_FALSE(checks(*cropped, {x, Tensor(), one}, f, {2, 8}));
  EXPECT_FALSE(checks(*scaled, {x, Tensor(), size}, f, {2, 8}));
  EXPECT_FALSE(checks(*scaled, {x, Tensor(), reals(f, {2, 2})}, f, {2, 8}));
  EXPECT_FALSE(checks(*scaled, {x, Tensor(), one}, DType::f64, {2, 8}));
  EXPECT_FALSE(checks(*scaled, {x, Tensor(), one}, f, {3, 8}));
  EXPECT_FALSE(checks(*scaled, {x, Tensor(), one}, f, {2, 8, 1}));

  // Scales that only running tells.
  const auto error = [&](double scale) {
    const Arguments arguments({x, Tensor(), reals(f, {scale})}, random);
    const TestTensor y = TestTensor::copy_of(random_integers(f, {2, 8}, 0, 1, random), random);
    const auto kernel = kernel_of([](P& p) {
      p.rule.mode = SampleRule::Mode::linear;
      p.rule.antialias = true;
    });
    const std::vector<TensorArg> outputs{y.arg};
    EXPECT_TRUE(kernel->check(arguments.args, outputs));
    TestWorkspace workspace(kernel->workspace_bytes(arguments.args, outputs, 1));
    const Result<> run = kernel->try_run({arguments.args, outputs, workspace.get(), pool_of(1)});
    EXPECT_TRUE(workspace.guard_untouched());
    return run ? "" : run.error().message;
  };
  EXPECT_EQ(error(2), "");
  for (const double scale : {0.0, -1.0, HUGE_VAL, 0.001, std::nan("")}) EXPECT_NE(error(scale), "") << scale;
}

}  // namespace
}  // namespace lathe::cpu
