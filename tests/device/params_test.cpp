// SPDX-License-Identifier: Apache-2.0
#include "device/params.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

enum class Mode : uint8_t { first, second };

struct Inner {
  int32_t a = 0;
  bool b = false;
  static constexpr auto members() { return std::tuple(&Inner::a, &Inner::b); }
  bool operator==(const Inner&) const = default;
};

struct Outer {
  Mode mode = Mode::first;
  float scale = 0;
  double exact = 0;
  std::array<int64_t, 2> pair{};
  std::vector<Inner> list;
  int64_t last = 0;
  static constexpr auto members() {
    return std::tuple(&Outer::mode, &Outer::scale, &Outer::exact, &Outer::pair, &Outer::list, &Outer::last);
  }
  bool operator==(const Outer&) const = default;
};

const Outer kOuter{Mode::second, -0.5f, 1e300, {3, -4}, {{7, true}, {-8, false}}, INT64_MIN};

TEST(Params, ReadsBackWhatWasWritten) {
  const std::vector<int64_t> list = encode_params(kOuter);
  EXPECT_EQ(decode_params<Outer>(list), kOuter);
  EXPECT_EQ(list.size(), 3u + 2 + 1 + 4 + 1);
}

TEST(Params, RefusesListsOfAnotherLength) {
  std::vector<int64_t> list = encode_params(kOuter);
  for (size_t n = 0; n < list.size(); ++n) EXPECT_FALSE(decode_params<Outer>(std::span(list).first(n))) << n;
  list.push_back(0);
  EXPECT_FALSE(decode_params<Outer>(list));
}

struct Grown {
  int64_t first = 0;
  std::array<int64_t, 2> pair{};
  bool added = true;
  Inner also{5, true};
  static constexpr size_t kAddedMembers = 2;
  static constexpr auto members() { return std::tuple(&Grown::first, &Grown::pair, &Grown::added, &Grown::also); }
  bool operator==(const Grown&) const = default;
};

TEST(Params, ReadsListsOfBeforeMembersWereAdded) {
  const std::vector<int64_t> list = encode_params(Grown{1, {2, 3}, false, {4, false}});
  EXPECT_EQ(decode_params<Grown>(list), (Grown{1, {2, 3}, false, {4, false}}));
  EXPECT_EQ(decode_params<Grown>(std::span(list).first(4)), (Grown{1, {2, 3}, false, {5, true}}));
  EXPECT_EQ(decode_params<Grown>(std::span(list).first(3)), (Grown{1, {2, 3}, true, {5, true}}));
  for (const size_t n : {0, 1, 2, 5}) EXPECT_FALSE(decode_params<Grown>(std::span(list).first(n))) << n;
}

TEST(Params, RefusesNumbersThatDoNotFit) {
  const std::vector<int64_t> list = encode_params(kOuter);
  const auto with = [&](size_t at, int64_t value) {
    std::vector<int64_t> changed = list;
    changed[at] = value;
    return decode_params<Outer>(changed).has_value();
  };
  EXPECT_FALSE(with(0, 256));               // an enumeration of 8 bits
  EXPECT_FALSE(with(1, int64_t{1} << 40));  // a float's bits
  EXPECT_FALSE(with(5, -1));                // a length
  EXPECT_FALSE(with(5, INT64_MAX));         // more than there is
  EXPECT_FALSE(with(6, int64_t{1} << 31));  // 32 bits
  EXPECT_FALSE(with(7, 2));                 // a boolean
  EXPECT_TRUE(with(10, 5));
}

}  // namespace
}  // namespace lathe
