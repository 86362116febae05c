// SPDX-License-Identifier: Apache-2.0
#include "plan/disjoint.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace lathe::plan {
namespace {

TensorDesc view(Shape dims, Shape strides, Expr offset) {
  TensorDesc tensor;
  tensor.dims = std::move(dims), tensor.strides = std::move(strides), tensor.offset = std::move(offset);
  return tensor;
}

const Expr n = Expr::symbol(0), h = Expr::symbol(1);
const std::vector<Range> kRanges = {{1, 8}, {1, 64}};

TEST(Disjoint, PartsOfConcatenations) {
  const Shape last{h * h * 8, 1, h * 8, 8};  // 8 channels, which come last
  EXPECT_TRUE(are_disjoint(view({n, 3, h, h}, last, 0), view({n, 5, h, h}, last, 3), kRanges));
  EXPECT_TRUE(are_disjoint(view({n, 5, h, h}, last, 3), view({n, 3, h, h}, last, 0), kRanges));
  EXPECT_TRUE(are_disjoint(view({n, 2, h, h}, last, 0), view({n, 2, h, h}, last, 6), kRanges)) << "others lie between";
  EXPECT_FALSE(are_disjoint(view({n, 4, h, h}, last, 0), view({n, 5, h, h}, last, 3), kRanges)) << "they overlap";
  EXPECT_FALSE(are_disjoint(view({n, 3, h, h}, last, 0), view({n, 6, h, h}, last, 3), kRanges))
      << "the last one goes on in the next pixel";
  const Shape rows{8 * h, h, 1};  // row-major
  EXPECT_TRUE(are_disjoint(view({n, 3, h}, rows, 0), view({n, 5, h}, rows, 3 * h), kRanges));
  EXPECT_FALSE(are_disjoint(view({n, 3, h}, rows, 0), view({n, 5, h}, rows, 2 * h), kRanges));
  EXPECT_TRUE(are_disjoint(view({n, h}, {}, 0), view({2, h}, {}, n * h), kRanges))
      << "dense ones, one behind the other";
  EXPECT_FALSE(are_disjoint(view({n, h}, {}, 0), view({2, h}, {}, h), kRanges)) << "n may be more than 1";
}

TEST(Disjoint, OthersAreNotProven) {
  EXPECT_FALSE(are_disjoint(view({4}, {2}, 0), view({4}, {2}, 1), kRanges)) << "even and odd places";
  EXPECT_FALSE(are_disjoint(view({4}, {1}, 0), view({4}, {2}, 4), kRanges)) << "other strides";
  EXPECT_FALSE(are_disjoint(view({4, 4}, {3, 2}, 0), view({4, 4}, {3, 2}, 100), kRanges)) << "dimensions do not nest";
  EXPECT_FALSE(are_disjoint(view({}, {}, 0), view({}, {}, 1), kRanges)) << "scalars have no dimension";
}

// What is proven is compared with the elements, one by one.
TEST(Disjoint, RandomViews) {
  std::mt19937 random(7);
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  const auto elements = [](const TensorDesc& t) {
    std::set<int64_t> all{*t.offset.as_constant()};
    for (size_t i = 0; i < t.dims.size(); ++i) {
      std::set<int64_t> more;
      for (const int64_t at : all)
        for (int64_t j = 0; j < *t.dims[i].as_constant(); ++j) more.insert(at + j * *t.strides[i].as_constant());
      all = std::move(more);
    }
    return all;
  };
  int proven = 0;
  for (int round = 0; round < 20000; ++round) {
    const int rank = pick(1, 3);
    Shape strides, of_a, of_b;
    for (int i = 0; i < rank; ++i) {
      strides.emplace_back(pick(0, 12));
      of_a.emplace_back(pick(1, 4)), of_b.emplace_back(pick(0, 2) ? of_a.back() : Expr(pick(1, 4)));
    }
    const TensorDesc a = view(of_a, strides, pick(0, 20)), b = view(of_b, strides, pick(0, 20));
    if (!are_disjoint(a, b, {})) continue;
    ++proven;
    std::set<int64_t> both = elements(a);
    both.merge(elements(b));
    EXPECT_EQ(both.size(), elements(a).size() + elements(b).size()) << round;
  }
  EXPECT_GT(proven, 500);
}

}  // namespace
}  // namespace lathe::plan
