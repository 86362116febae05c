// SPDX-License-Identifier: Apache-2.0
// The kernel against the op's plain evaluation, in every layout.
#include "kernels/cpu/roi_align/roi_align.h"

#include <bit>

#include "kernels/cpu/evaluation_check.h"
#include "ops/op.h"

namespace lathe::cpu {
namespace {

struct Case {
  std::vector<int64_t> dims;
  int64_t height, width, samples;
  float scale;
  bool half_pixel;
};

Tensor dense(TestTensor& tensor) {
  Tensor copy = *Tensor::allocate(DType::f32, Dims(tensor.arg.dims, tensor.arg.dims + tensor.arg.rank));
  float* to = copy.mutable_as<float>();
  tensor.for_each([&](const std::vector<int64_t>&, float& x) { *to++ = x; });
  return copy;
}

void expect_as_evaluated(const Case& c, bool largest, const std::vector<int>& x_order,
                         const std::vector<int>& y_order) {
  std::mt19937 random(7);
  const std::vector<float> edges = {0, 0, 3, 3, -2, -3, 40, 37, 1.25, 0.5, 1.5, 0.75,
                                    6, 5, 2, 1, 90, 90, 95, 99, 4,    4,   4,   4};
  const auto count = static_cast<int64_t>(edges.size() / 4);
  TestTensor x(c.dims, x_order, 3), regions({count, 4}), y({count, c.dims[1], c.height, c.width}, y_order, 2);
  x.fill(random);
  std::copy(edges.begin(), edges.end(), regions.floats().begin());
  std::vector<int64_t> images;
  for (int64_t i = 0; i < count; ++i) images.push_back(i % c.dims[0]);
  TensorArg numbers;
  numbers.dtype = DType::i64;
  numbers.rank = 1;
  numbers.dims[0] = count, numbers.strides[0] = 1;
  numbers.data = images.data();
  RoiAlignAttrs attrs;
  attrs.mode = largest ? PoolingOp::max : PoolingOp::average;
  attrs.height = c.height, attrs.width = c.width;
  attrs.sampling_ratio = c.samples, attrs.spatial_scale = c.scale, attrs.half_pixel = c.half_pixel;
  const std::vector<Tensor> inputs = {dense(x), dense(regions), Tensor::from<int64_t>({count}, images)};
  const auto expected = run_op(attrs, inputs, 1);
  ASSERT_TRUE(expected) << expected.error().message;
  const RoiAlignParams params{largest, c.samples, c.scale, c.half_pixel};
  for (const int threads : {1, 3}) {
    run_kernel(*make_kernel("roi_align", params), {x.arg, regions.arg, numbers}, {y.arg}, threads);
    EXPECT_TRUE(y.gaps_untouched());
    int64_t i = 0;
    y.for_each([&](const std::vector<int64_t>&, float& actual) {
      const double wanted = (*expected)[0].at_double(i++);
      ASSERT_NEAR(actual, wanted, 2e-6 * std::max(1.0, std::abs(wanted))) << "element " << i - 1;
    });
  }
}

TEST(RoiAlign, MatchesThePlainEvaluation) {
  for (const Case& c : {Case{{2, 5, 7, 9}, 3, 2, 0, 0.5, true},
                        {{1, 33, 20, 13}, 7, 7, 2, 1, true},
                        {{2, 70, 6, 40}, 2, 3, 0, 1, false},
                        {{1, 1, 40, 40}, 1, 1, 0, 1, true},
                        {{3, 2, 1, 1}, 2, 2, 3, 1, false}})
    for (const bool largest : {false, true})
      for (const std::vector<int>& x_order : {std::vector<int>{0, 1, 2, 3}, std::vector<int>{0, 2, 3, 1}})
        for (const std::vector<int>& y_order : {std::vector<int>{0, 1, 2, 3}, std::vector<int>{0, 2, 3, 1}})
          expect_as_evaluated(c, largest, x_order, y_order);
}

// Of doubles, with image numbers of any integer type.
TEST(RoiAlign, OfDoublesMatchesThePlainEvaluation) {
  std::mt19937 random(17);
  for (int repeat = 0; repeat < 24; ++repeat) {
    RoiAlignAttrs attrs;
    attrs.mode = repeat % 2 ? PoolingOp::max : PoolingOp::average;
    attrs.height = pick_between(random, 1, 4), attrs.width = pick_between(random, 1, 4);
    attrs.sampling_ratio = pick_between(random, 0, 2), attrs.spatial_scale = 0.7;
    attrs.half_pixel = pick_between(random, 0, 1);
    const Dims dims = {2, pick_between(random, 1, 40), 9, pick_between(random, 5, 40)};
    const DType type = std::array{DType::i64, DType::i8, DType::u16, DType::i32}[repeat % 4];
    const Tensor x = random_integers(DType::f64, dims, -9, 9, random);
    const Tensor regions = random_integers(DType::f64, {5, 4}, -3, 50, random);
    const Tensor images = random_integers(type, {5}, 0, 1, random);
    const std::vector<Tensor> inputs = {x, regions, images};
    const auto expected = run_op(attrs, inputs, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    // x with contiguous columns or channels.
    std::vector<double> memory(static_cast<size_t>(x.volume()));
    const TestTensor lists[] = {TestTensor::copy_of(regions, random), TestTensor::copy_of(images, random)};
    TensorArg image;
    image.dtype = DType::f64;
    image.rank = 4;
    image.data = memory.data();
    std::copy(dims.begin(), dims.end(), image.dims);
    const bool last = repeat % 3 == 0;
    const int64_t strides[] = {dims[1] * dims[2] * dims[3], last ? 1 : dims[2] * dims[3],
                               dims[3] * (last ? dims[1] : 1), last ? dims[1] : 1};
    std::copy(strides, strides + 4, image.strides);
    for (int64_t i = 0; i < x.volume(); ++i) {
      int64_t offset = 0, rest = i;
      for (int d = 4; d-- > 0; rest /= dims[static_cast<size_t>(d)])
        offset += rest % dims[static_cast<size_t>(d)] * strides[d];
      memory[static_cast<size_t>(offset)] = x.as<double>()[i];
    }
    TestTensor y = TestTensor::copy_of(*Tensor::allocate(DType::f64, (*expected)[0].dims()), random);
    const RoiAlignParams params{attrs.mode == PoolingOp::max, attrs.sampling_ratio, attrs.spatial_scale,
                                attrs.half_pixel};
    run_kernel(*make_kernel("roi_align", params), {image, lists[0].arg, lists[1].arg}, {y.arg}, 3);
    expect_close(y.checked_content(), (*expected)[0], to_text(attrs));
  }
}

TEST(RoiAlign, ImagesThatAreNotThereReadAsZero) {
  TestTensor x({1, 2, 3, 3}), regions({2, 4}), y({2, 2, 1, 1});
  std::ranges::fill(x.floats(), 1.0f);
  std::ranges::fill(regions.floats(), 1.0f);
  std::vector<int32_t> images = {1, -1};
  TensorArg numbers;
  numbers.dtype = DType::i32;
  numbers.rank = 1;
  numbers.dims[0] = 2, numbers.strides[0] = 1;
  numbers.data = images.data();
  run_kernel(*make_kernel("roi_align", RoiAlignParams{.samples = 2}), {x.arg, regions.arg, numbers}, {y.arg}, 1);
  y.for_each([](const std::vector<int64_t>&, float& value) { EXPECT_EQ(value, 0); });
}

TEST(RoiAlign, RefusesWhatItCannotDo) {
  const KernelFactory factory = find_kernel("roi_align");
  for (const std::vector<int64_t>& params : {std::vector<int64_t>{},
                                             {2, 0, 0, 0},
                                             {0, -1, 0, 0},
                                             {0, 0, std::bit_cast<int64_t>(HUGE_VAL), 0},
                                             {0, 0, 0, 2},
                                             {0, 1 << 20, 0, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  const auto kernel = make_kernel("roi_align", RoiAlignParams{});
  TestTensor x({1, 2, 3, 3}), regions({2, 4}), wrong({3, 4}), images({2}), y({2, 2, 1, 1});
  EXPECT_FALSE(kernel->check(std::vector{x.arg, regions.arg}, std::vector{y.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, regions.arg, images.arg}, std::vector{y.arg}));
  images.arg.dtype = DType::i64;
  EXPECT_TRUE(kernel->check(std::vector{x.arg, regions.arg, images.arg}, std::vector{y.arg}));
  EXPECT_FALSE(kernel->check(std::vector{x.arg, wrong.arg, images.arg}, std::vector{y.arg}));
}

}  // namespace
}  // namespace lathe::cpu
