// SPDX-License-Identifier: Apache-2.0
#include "onnx/plugin_field.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

PluginField field(std::string_view word) { return to_plugin_fields(word).at(0); }

TEST(PluginField, SaysWhatMayBeThere) {
  const std::vector<PluginField> fields = to_plugin_fields("i!:topK=count F4!:variance>-inf c:reduction f:eps>=0");
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].name, "topK");
  EXPECT_TRUE(fields[0].is_required && fields[0].is_single());
  EXPECT_EQ(fields[0].range(), "1 to 1048576");
  EXPECT_EQ(fields[1].type, 'F');
  EXPECT_EQ(fields[1].name, "variance");
  EXPECT_EQ(fields[1].count, 4u);
  EXPECT_EQ(fields[1].range(), "a finite number");
  EXPECT_FALSE(fields[2].has_range || fields[2].is_required);
  EXPECT_EQ(fields[3].range(), "0 or more");
  EXPECT_TRUE(to_plugin_fields("").empty());
}

TEST(PluginField, TakesWhatIsInItsRange) {
  const auto takes = [](std::string_view word, std::vector<double> numbers) {
    std::vector<bool> taken;
    for (const double number : numbers) taken.push_back(field(word).takes(number));
    return taken;
  };
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  using Taken = std::vector<bool>;
  EXPECT_EQ(takes("i:x=-1..2", {-2, -1, 2, 3}), (Taken{false, true, true, false}));
  EXPECT_EQ(takes("f:x>0", {0, 1e-30, infinity, nan}), (Taken{false, true, false, false}));
  EXPECT_EQ(takes("f:x>=0", {-1e-30, 0, infinity, nan}), (Taken{false, true, false, false}));
  EXPECT_EQ(takes("f:x>-inf", {-infinity, -1e30, infinity, nan}), (Taken{false, true, false, false}));
  EXPECT_EQ(takes("f:x=-inf..inf", {-infinity, infinity, nan}), (Taken{true, true, false}));
  EXPECT_EQ(takes("f:x", {infinity, nan}), (Taken{true, true}));
}

TEST(PluginField, EachOfTheTableIsOne) {
  for (const StandardPlugin& plugin : standard_plugins())
    for (const PluginField& each : to_plugin_fields(plugin.fields)) {
      EXPECT_NE(std::string_view("ifIFc").find(each.type), std::string_view::npos) << plugin.name << each.name;
      EXPECT_FALSE(each.name.empty()) << plugin.name;
      EXPECT_EQ(each.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"),
                std::string_view::npos)
          << plugin.name << ' ' << each.name;
      EXPECT_LT(each.least, each.most) << plugin.name << ' ' << each.name;
      EXPECT_TRUE(!each.is_single() || each.count == 0) << plugin.name << ' ' << each.name;
    }
}

}  // namespace
}  // namespace lathe::onnx
