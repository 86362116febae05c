// SPDX-License-Identifier: Apache-2.0
#include "fixtures/alike.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(Alike, FindsASingleBit) {
  for (int axis = 0; axis < 3; ++axis) {
    Tensor tensor = *Tensor::allocate(DType::f32, {2, 3, 4});
    for (int i = 0; i < 24; ++i) tensor.mutable_as<float>()[i] = static_cast<float>(i);
    EXPECT_NE(unlike(tensor, axis), "");
    make_alike(tensor, axis);
    EXPECT_EQ(unlike(tensor, axis), "");
    EXPECT_EQ(tensor.as<float>()[0], 0);
    tensor.mutable_as<uint32_t>()[23] ^= 1;
    EXPECT_NE(unlike(tensor, axis).find("along axis " + std::to_string(axis)), std::string::npos);
  }
  EXPECT_EQ(unlike(Tensor::of<float>({}, {1}), 0), "");
}

}  // namespace
}  // namespace lathe
