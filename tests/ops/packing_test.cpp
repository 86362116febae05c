// SPDX-License-Identifier: Apache-2.0
#include "ops/packing.h"

#include <gtest/gtest.h>

#include "ops/derivation.h"
#include "ops/rules.h"

namespace lathe {
namespace {

Tensor counting(DType type, Dims dims) {
  Tensor tensor = *Tensor::allocate(type, std::move(dims));
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.volume(); ++i) values.push_back(static_cast<double>(i + 1));
  from_doubles(values, tensor);
  return tensor;
}

// Columns of a 2 x 3 matrix, padded to 4 rows.
const Packing kColumns{{3, 4}, {{0, 0, {3, 2}, {1, 3}, {4, 1}}}};

TEST(Packings, PutElementsWhereTheySay) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::i8}) {
    const Result<Tensor> packed = kColumns.apply(counting(type, {2, 3}));
    ASSERT_TRUE(packed) << packed.error().to_string();
    EXPECT_EQ(packed->dims(), (Dims{3, 4}));
    EXPECT_EQ(to_doubles(*packed), (std::vector<double>{1, 4, 0, 0, 2, 5, 0, 0, 3, 6, 0, 0})) << name_of(type);
  }
}

TEST(Packings, Repeat) {
  Packing twice = kColumns.repeated(2, 6, 12);
  twice.dims = {24};
  const Result<Tensor> packed = twice.apply(counting(DType::f32, {12}));
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->at_double(12), 7);
  EXPECT_EQ(packed->at_double(13), 10);
}

TEST(Packings, AreNumbersInFiles) {
  Packing several = kColumns;
  several.boxes.push_back({5, 2, {1}, {0}, {0}});
  const std::vector<int64_t> numbers = to_numbers(several);
  const Result<Packing> back = packing_from(numbers);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(to_numbers(*back), numbers);
  for (size_t size = 0; size < numbers.size(); ++size) {
    const Result<Packing> shorter = packing_from(std::span(numbers).first(size));
    EXPECT_TRUE(!shorter || shorter->boxes.size() < 2) << size;
  }
  EXPECT_FALSE(packing_from(std::vector<int64_t>{1, -4}));
  EXPECT_FALSE(packing_from(std::vector<int64_t>{9, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_FALSE(packing_from(std::vector<int64_t>{1, 4, 1, 0, 0, 0, 1, 1}));  // an empty box
}

TEST(Packings, ThatLeaveATensorAreRefused) {
  const Tensor source = counting(DType::f32, {6});
  const std::vector<PackingBox> boxes = {{-1, 0, {1}, {1}, {1}},
                                         {0, 0, {7}, {1}, {1}},
                                         {0, 10, {3}, {1}, {1}},
                                         {0, 0, {2}, {INT64_MAX}, {1}},
                                         {0, 0, {3, 3}, {INT64_MAX / 2, INT64_MAX / 2}, {0, 0}},
                                         {0, 0, {2}, {1}, {-1}}};
  for (const PackingBox& box : boxes) EXPECT_FALSE((Packing{{12}, {box}}.apply(source)));
  EXPECT_FALSE((Packing{{INT64_MAX, 4}, {}}.apply(source)));
  EXPECT_TRUE((Packing{{12}, {{5, 0, {6}, {-1}, {2}}}}.apply(source)));
}

TEST(Derivations, FollowWeightsThroughOps) {
  const DerivationPtr leaf = Derivation::of_weights(3);
  const Known weights{counting(DType::f32, {2}), leaf}, constant{counting(DType::f32, {2}), nullptr};
  ElementwiseAttrs product;
  product.op = ElementwiseOp::mul;
  const auto derived = compute(product, std::array{weights, constant}, 1);
  ASSERT_TRUE(derived);
  EXPECT_EQ(to_doubles((*derived)[0].content), (std::vector<double>{1, 4}));
  const DerivationPtr& made = (*derived)[0].derivation;
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->inputs[0], leaf);
  EXPECT_TRUE(identical(made->inputs[1]->constant, constant.content));
  const auto plain = compute(product, std::array{constant, constant}, 1);
  ASSERT_TRUE(plain);
  EXPECT_EQ((*plain)[0].derivation, nullptr);
}

}  // namespace
}  // namespace lathe
