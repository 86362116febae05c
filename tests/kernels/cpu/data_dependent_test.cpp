// SPDX-License-Identifier: Apache-2.0
// The kernels nonzero and compress, both steps, against the ops' plain evaluations.
#include "kernels/cpu/compress/compress.h"
#include "kernels/cpu/evaluation_check.h"
#include "kernels/cpu/nonzero/nonzero.h"

namespace lathe::cpu {
namespace {

// A dense tensor as kernels see it.
TensorArg view_of(const Tensor& tensor) {
  TensorArg arg;
  arg.dtype = tensor.dtype();
  arg.rank = tensor.rank();
  std::copy(tensor.dims().begin(), tensor.dims().end(), arg.dims);
  const Dims strides = row_major_strides(tensor.dims());
  std::copy(strides.begin(), strides.end(), arg.strides);
  arg.data = const_cast<void*>(tensor.data());
  return arg;
}

// Counts, then writes as many; `count` is the last element of what the first step finds.
template <class P>
void compare(const char* name, P params, bool flat, const Attributes& attributes, const std::vector<Tensor>& inputs,
             int64_t length, size_t counted_dim, std::mt19937& random) {
  const auto expected = run_op(attributes, inputs, 1);
  ASSERT_TRUE(expected) << expected.error().message;
  TestTensor x = TestTensor::copy_of(inputs[0], random);
  const TensorArg x_arg = flat ? view_of(inputs[0]) : x.arg;
  std::vector<TensorArg> args{x_arg};
  std::vector<TestTensor> others;
  others.reserve(inputs.size());
  for (size_t i = 1; i < inputs.size(); ++i)
    args.push_back(others.emplace_back(TestTensor::copy_of(inputs[i], random)).arg);
  const int threads = pick_between(random, 0, 1) ? 1 : 3;
  const Tensor found = *Tensor::allocate(DType::i64, {length});
  run_kernel(*make_kernel(name, params), args, {view_of(found)}, threads);
  ASSERT_EQ(found.at(length - 1), (*expected)[0].dims()[counted_dim]);
  TestTensor result = TestTensor::copy_of(*Tensor::allocate((*expected)[0].dtype(), (*expected)[0].dims()), random);
  params.writes = true;
  run_kernel(*make_kernel(name, params), {x_arg, view_of(found)}, {result.arg}, threads);
  if (!::testing::Test::HasFatalFailure()) expect_same(result.checked_content(), (*expected)[0], name);
}

void compare_nonzero(const Tensor& x, std::mt19937& random) {
  compare("nonzero", NonzeroParams{}, false, NonzeroAttrs(), {x}, x.volume() + 1, 1, random);
}

TEST(Nonzero, IsTheEvaluation) {
  std::mt19937 random(101);
  for (int repeat = 0; repeat < 12; ++repeat)
    for (const DType type : kAllTypes) {
      const Dims dims = random_dims(pick_between(random, 0, 4), repeat < 2 ? 0 : 1, 7, random);
      compare_nonzero(repeat % 2 ? hard_tensor(type, dims, random) : random_integers(type, dims, -1, 1, random),
                      random);
    }
  for (const Dims& dims : {Dims{100000}, Dims{300, 301}, Dims{40000, 1}, Dims{9, 1000, 3}})
    for (const DType type : {DType::boolean, DType::f32, DType::f16, DType::i64})
      compare_nonzero(random_integers(type, dims, 0, 1, random), random);
}

TEST(Compress, IsTheEvaluation) {
  std::mt19937 random(102);
  for (int repeat = 0; repeat < 12; ++repeat)
    for (const DType type : kAllTypes) {
      const int64_t rank = pick_between(random, 1, 4);
      const Tensor x = hard_tensor(type, random_dims(rank, repeat < 2 ? 0 : 1, 9, random), random);
      CompressAttrs attrs;
      attrs.flat = pick_between(random, 0, 1) == 1;
      attrs.axis = pick_between(random, 0, rank - 1);
      const int64_t extent = attrs.flat ? x.volume() : x.dims()[static_cast<size_t>(attrs.axis)];
      const int64_t length = pick_between(random, 0, extent);
      const int axis = attrs.flat ? -1 : static_cast<int>(attrs.axis);
      compare("compress", CompressParams{false, axis}, attrs.flat, attrs,
              {x, random_integers(DType::boolean, {length}, 0, 1, random)}, length + 1,
              static_cast<size_t>(std::max(axis, 0)), random);
    }
}

TEST(Compress, PositionsBeyondTheAxisAreAnError) {
  std::mt19937 random(103);
  const std::vector<Tensor> inputs = {hard_tensor(DType::f32, {3, 4}, random),
                                      Tensor::of<bool>({6}, {true, false, false, true, true, false})};
  CompressAttrs attrs;
  attrs.flat = false;
  EXPECT_EQ(error_of_run("compress", CompressParams{false, 0}, inputs, *Tensor::allocate(DType::i64, {7}), random),
            error_of_evaluation(attrs, inputs));
}

TEST(DataDependentKernels, RefuseWhatTheyCannotRun) {
  for (const char* name : {"nonzero", "compress"})
    for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{{}, {2, 0}, {2}, {0, -2}, {0, 0, 0}})
      EXPECT_FALSE(find_kernel(name)(Record{params, nullptr})) << name;
  std::mt19937 random(104);
  const auto checks = [&](const char* name, const EncodedParams& params, const std::vector<Tensor>& inputs,
                          const Dims& output, DType type) {
    std::vector<TestTensor> strided;
    std::vector<TensorArg> args;
    strided.reserve(inputs.size());
    for (const Tensor& input : inputs) args.push_back(strided.emplace_back(TestTensor::copy_of(input, random)).arg);
    TestTensor result = TestTensor::copy_of(hard_tensor(type, output, random), random);
    return static_cast<bool>(make_kernel(name, params)->check(args, std::vector{result.arg}));
  };
  const auto make = [&](DType type, const Dims& dims) { return hard_tensor(type, dims, random); };
  const Tensor x = make(DType::f32, {50, 100});
  EXPECT_TRUE(checks("nonzero", NonzeroParams{}, {x}, {5001}, DType::i64));
  EXPECT_FALSE(checks("nonzero", NonzeroParams{}, {x}, {2}, DType::i64));
  EXPECT_TRUE(checks("nonzero", NonzeroParams{true}, {x, make(DType::i64, {5001})}, {2, 7}, DType::i64));
  EXPECT_FALSE(checks("nonzero", NonzeroParams{true}, {x, make(DType::i64, {2})}, {2, 7}, DType::i64));
  EXPECT_FALSE(checks("nonzero", NonzeroParams{true}, {x, make(DType::i64, {5001})}, {3, 7}, DType::i64));
  EXPECT_TRUE(checks("compress", CompressParams{false, 1}, {x, make(DType::boolean, {9})}, {10}, DType::i64));
  EXPECT_FALSE(checks("compress", CompressParams{false, 1}, {x, make(DType::boolean, {9})}, {9}, DType::i64));
  EXPECT_FALSE(checks("compress", CompressParams{false, 2}, {x, make(DType::boolean, {9})}, {10}, DType::i64));
  EXPECT_TRUE(checks("compress", CompressParams{true, 1}, {x, make(DType::i64, {10})}, {50, 9}, DType::f32));
  EXPECT_FALSE(checks("compress", CompressParams{true, 1}, {x, make(DType::i64, {10})}, {50, 10}, DType::f32));
  EXPECT_FALSE(checks("compress", CompressParams{true, 1}, {x, make(DType::i64, {10})}, {9, 100}, DType::f32));
  EXPECT_FALSE(checks("compress", CompressParams{true, 1}, {x, make(DType::i64, {10})}, {50, 9}, DType::f16));
}

// What kernels walk by a pointer alone must be dense, whatever strides a plan gives it.
TEST(DataDependentKernels, RefuseGaps) {
  std::mt19937 random(105);
  const Tensor x = hard_tensor(DType::f32, {5, 10}, random), condition = hard_tensor(DType::boolean, {9}, random);
  const auto checks = [&](const char* name, const EncodedParams& params, const std::vector<TensorArg>& inputs,
                          const TensorArg& output) {
    return static_cast<bool>(make_kernel(name, params)->check(inputs, std::vector{output}));
  };
  const auto spread = [](TensorArg arg, int64_t stride) {
    arg.strides[arg.rank - 1] = stride;
    return arg;
  };
  const TensorArg found = view_of(hard_tensor(DType::i64, {51}, random));
  const TensorArg list = view_of(hard_tensor(DType::i64, {10}, random));
  const TensorArg positions = view_of(hard_tensor(DType::i64, {2, 7}, random));
  const TensorArg selected = view_of(hard_tensor(DType::f32, {9}, random));
  for (const int64_t stride : {0, 1, 2}) {
    const bool is_dense = stride == 1;
    EXPECT_EQ(checks("nonzero", NonzeroParams{}, {view_of(x)}, spread(found, stride)), is_dense);
    EXPECT_EQ(checks("nonzero", NonzeroParams{true}, {view_of(x), spread(found, stride)}, positions), is_dense);
    EXPECT_EQ(checks("compress", CompressParams{false, 1}, {view_of(x), view_of(condition)}, spread(list, stride)),
              is_dense);
    EXPECT_EQ(checks("compress", CompressParams{true, -1}, {spread(view_of(x), stride), list}, selected), is_dense);
  }
}

}  // namespace
}  // namespace lathe::cpu
