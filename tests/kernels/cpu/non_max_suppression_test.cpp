// SPDX-License-Identifier: Apache-2.0
// Both steps of the kernel against the op's plain evaluation.
#include "kernels/cpu/non_max_suppression/non_max_suppression.h"
#include "kernels/cpu/kernel_runner.h"
#include "ops/op.h"

namespace lathe::cpu {
namespace {

TensorArg view_of(const Tensor& tensor) {
  TensorArg arg;
  if (!tensor.defined()) return arg;
  arg.dtype = tensor.dtype();
  arg.rank = tensor.rank();
  int64_t stride = 1;
  for (int d = arg.rank; d-- > 0;) {
    arg.dims[d] = tensor.dims()[static_cast<size_t>(d)];
    arg.strides[d] = stride;
    stride *= arg.dims[d];
  }
  arg.data = const_cast<void*>(tensor.data());
  return arg;
}

// Boxes on a grid, so that many overlap by just as much and many scores are equal.
Tensor numbers(const Dims& dims, std::mt19937& random, int most) {
  std::uniform_int_distribution<int> whole(0, most);
  Tensor tensor = *Tensor::allocate(DType::f32, dims);
  for (int64_t i = 0; i < tensor.volume(); ++i)
    tensor.mutable_as<float>()[i] = static_cast<float>(whole(random)) * 0.5f;
  return tensor;
}

void expect_as_evaluated(const std::vector<Tensor>& inputs, int64_t length, bool center) {
  NonMaxSuppressionAttrs attrs;
  attrs.center_point_box = center;
  const auto expected = run_op(attrs, inputs, 1);
  ASSERT_TRUE(expected) << expected.error().message;
  std::vector<TensorArg> args;
  for (size_t i = 0; i < 5; ++i) args.push_back(i < inputs.size() ? view_of(inputs[i]) : TensorArg());
  const int64_t slots = args[1].dims[0] * args[1].dims[1];
  for (const int threads : {1, 3}) {
    const Tensor found = *Tensor::allocate(DType::i64, {slots * length + slots + 1});
    run_kernel(*make_kernel("non_max_suppression", NonMaxSuppressionParams{false, center}), args, {view_of(found)},
               threads);
    const int64_t count = found.at(slots * length + slots);
    const Tensor boxes = *Tensor::allocate(DType::i64, {count, 3});
    run_kernel(*make_kernel("non_max_suppression", NonMaxSuppressionParams{true, center}), {args[1], view_of(found)},
               {view_of(boxes)}, threads);
    EXPECT_TRUE(identical(boxes, (*expected)[0]));
  }
}

TEST(NonMaxSuppression, MatchesThePlainEvaluation) {
  std::mt19937 random(11);
  for (const int64_t count : {0, 1, 2, 31, 33, 300, 1000})
    for (const bool center : {false, true}) {
      const Tensor boxes = numbers({2, count, 4}, random, 30), scores = numbers({2, 3, count}, random, 40);
      const auto most = [](int64_t n) { return Tensor::of<int64_t>({1}, {n}); };
      const Tensor iou = Tensor::of<float>({1}, {0.25f}), least = Tensor::of<float>({}, {7});
      expect_as_evaluated({boxes, scores, most(count), iou, least}, count, center);
      expect_as_evaluated({boxes, scores, most(INT64_MAX), iou}, count, center);
      expect_as_evaluated({boxes, scores, most(5)}, std::min<int64_t>(5, count), center);
      expect_as_evaluated({boxes, scores, Tensor::of<int32_t>({}, {-4}), Tensor(), least}, count, center);
      expect_as_evaluated({boxes, scores}, 0, center);
    }
}

TEST(NonMaxSuppression, RefusesWhatDoesNotFit) {
  const KernelFactory factory = find_kernel("non_max_suppression");
  for (const std::vector<int64_t>& params : {std::vector<int64_t>{}, {2, 0}, {0, 2}, {0, 0, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  const auto kernel = make_kernel("non_max_suppression", NonMaxSuppressionParams{false, false});
  const TensorArg boxes = view_of(*Tensor::allocate(DType::f32, {1, 4, 4})), none;
  const TensorArg scores = view_of(*Tensor::allocate(DType::f32, {1, 2, 4})),
                  others = view_of(*Tensor::allocate(DType::f32, {1, 2, 3}));
  const TensorArg found = view_of(*Tensor::allocate(DType::i64, {11})),
                  odd = view_of(*Tensor::allocate(DType::i64, {10}));
  EXPECT_TRUE(kernel->check(std::vector{boxes, scores, none, none, none}, std::vector{found}));
  EXPECT_FALSE(kernel->check(std::vector{boxes, others, none, none, none}, std::vector{found}));
  EXPECT_FALSE(kernel->check(std::vector{boxes, scores, none, none, none}, std::vector{odd}));
  EXPECT_FALSE(kernel->check(std::vector{boxes, scores}, std::vector{found}));
  TensorArg gaps = found;  // the list is walked by a pointer alone
  gaps.strides[0] = 0;
  EXPECT_FALSE(kernel->check(std::vector{boxes, scores, none, none, none}, std::vector{gaps}));
  const TensorArg result = view_of(*Tensor::allocate(DType::i64, {3, 3}));
  const auto writer = make_kernel("non_max_suppression", NonMaxSuppressionParams{true, false});
  EXPECT_TRUE(writer->check(std::vector{scores, found}, std::vector{result}));
  EXPECT_FALSE(writer->check(std::vector{scores, gaps}, std::vector{result}));
}

}  // namespace
}  // namespace lathe::cpu
