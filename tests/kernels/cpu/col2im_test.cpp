// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/col2im/col2im.h"

#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
namespace {

struct Columns {
  Col2ImAttrs attrs;
  std::vector<Tensor> inputs;
  Col2ImParams params() const { return {attrs.stride, attrs.dilation, attrs.pads_begin, attrs.pads_end}; }
};

Columns columns_of(Ints stride, Ints dilation, Ints pads_begin, Ints pads_end) {
  Columns made;
  made.attrs.stride = std::move(stride);
  made.attrs.dilation = std::move(dilation);
  made.attrs.pads_begin = std::move(pads_begin);
  made.attrs.pads_end = std::move(pads_end);
  return made;
}

// Extents, blocks, strides, dilations and pads at random, such that the block fits; a negative pad cuts off.
Columns random_columns(DType type, int64_t spatial, int most, std::mt19937& random) {
  Columns made;
  Dims image, block;
  int64_t taps = 1, positions = 1;
  for (int64_t i = 0; i < spatial; ++i) {
    block.push_back(pick_between(random, 1, 4));
    made.attrs.stride.push_back(pick_between(random, 1, 4));
    made.attrs.dilation.push_back(pick_between(random, 1, 3));
    made.attrs.pads_begin.push_back(pick_between(random, -1, 3));
    made.attrs.pads_end.push_back(pick_between(random, -1, 3));
    const int64_t reach = (block.back() - 1) * made.attrs.dilation.back() + 1;
    const int64_t pads = made.attrs.pads_begin.back() + made.attrs.pads_end.back();
    image.push_back(std::max<int64_t>(reach - pads, 1) + pick_between(random, 0, most));
    taps *= block.back();
    positions *= (image.back() + pads - reach) / made.attrs.stride.back() + 1;
  }
  const int64_t channels = pick_between(random, 1, 3);
  // Sums of small integers are exact in every type but the narrowest, where they wrap alike.
  made.inputs = {random_integers(type, {pick_between(random, 1, 2), channels * taps, positions},
                                 is_floating(type) || is_integer(type) ? -9 : 0, 9, random),
                 Tensor::from<int64_t>({spatial}, image), Tensor::from<int64_t>({spatial}, block)};
  return made;
}

TEST(Col2Im, IsTheEvaluation) {
  std::mt19937 random(121);
  for (int repeat = 0; repeat < 30; ++repeat)
    for (const DType type : kAllTypes) {
      const Columns made = random_columns(type, 1 + repeat % 4, repeat % 4 < 2 ? 20 : 3, random);
      compare_with_evaluation("col2im", made.params(), made.attrs, made.inputs, random, {.read = {0, 2}});
    }
}

// More taps than are added together, rows of many vectors, and steps longer than the image.
TEST(Col2Im, OfManyTapsIsTheEvaluation) {
  std::mt19937 random(122);
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::u8}) {
    Columns made = columns_of({1, 1}, {1, 1}, {4, 4}, {4, 4});
    made.inputs = {random_integers(type, {1, 81, 6 * 150}, -9, 9, random), Tensor::of<int64_t>({2}, {6, 150}),
                   Tensor::of<int64_t>({2}, {9, 9})};
    compare_with_evaluation("col2im", made.params(), made.attrs, made.inputs, random);
    Columns wide = columns_of({2}, {1}, {3}, {0});
    wide.inputs = {random_integers(type, {1, 2 * 70, 17}, -9, 9, random), Tensor::of<int64_t>({1}, {100}),
                   Tensor::of<int64_t>({1}, {70})};
    compare_with_evaluation("col2im", wide.params(), wide.attrs, wide.inputs, random);
    Columns apart = columns_of({3, 9}, {1, 2}, {0, 2}, {0, 0});
    apart.inputs = {random_integers(type, {2, 6, 2}, -9, 9, random), Tensor::of<int64_t>({2}, {4, 5}),
                    Tensor::of<int64_t>({2}, {1, 3})};
    compare_with_evaluation("col2im", apart.params(), apart.attrs, apart.inputs, random);
  }
}

TEST(Col2Im, InfinitiesReachThePixelsThatTheyAreAddedTo) {
  std::mt19937 random(123);
  const float inf = HUGE_VALF, nan = std::numeric_limits<float>::quiet_NaN();
  compare_with_evaluation("col2im", Col2ImParams{{1}, {1}, {0}, {0}}, Col2ImAttrs(),
                          {Tensor::of<float>({1, 2, 3}, {inf, 1, -0.0f, nan, -inf, 2}), Tensor::of<int64_t>({1}, {4}),
                           Tensor::of<int64_t>({1}, {2})},
                          random);
}

TEST(Col2Im, BlocksThatTheColumnsDoNotFitAreErrors) {
  std::mt19937 random(124);
  const Tensor x = hard_tensor(DType::f32, {1, 4, 4}, random), y = *Tensor::allocate(DType::f32, {1, 1, 3, 3});
  const Tensor image = Tensor::of<int64_t>({2}, {3, 3});
  const Col2ImParams params{{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  EXPECT_EQ(error_of_run("col2im", params, {x, image, Tensor::of<int64_t>({2}, {2, 2})}, y, random), "");
  for (const std::initializer_list<int64_t> block :
       {std::initializer_list<int64_t>{4, 1}, {1, 4}, {-2, -2}, {0, 2}, {2, 1}, {INT64_MAX, INT64_MAX}, {1L << 32, 2}})
    EXPECT_NE(error_of_run("col2im", params, {x, image, Tensor::of<int64_t>({2}, block)}, y, random), "");
}

TEST(Col2Im, RefusesWhatItCannotRun) {
  for (const Col2ImParams& params : {Col2ImParams{}, Col2ImParams{{0}, {1}, {0}, {0}}, Col2ImParams{{1}, {0}, {0}, {0}},
                                     Col2ImParams{{1}, {1}, {0, 0}, {0}}, Col2ImParams{{1}, {1}, {INT64_MIN}, {0}}}) {
    const EncodedParams encoded = params;
    EXPECT_FALSE(find_kernel("col2im")(Record{encoded.list, nullptr}));
  }
}

}  // namespace
}  // namespace lathe::cpu
