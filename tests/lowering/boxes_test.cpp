// SPDX-License-Identifier: Apache-2.0
// Concatenations that are read where their parts lie: rolls, shifted windows.
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

// Builds for the CPU, compares with the plain evaluation, and gives the kinds of the steps, in their order.
std::vector<std::string> steps_of(const std::string& body, const std::vector<Dims>& shapes) {
  const std::string text = "graph \"g\" {\n" + body + "\n}";
  BuildReport report;
  const auto engine = build_engine(text, native_options(), 2, &report);
  EXPECT_TRUE(engine);
  if (!engine) return {};
  const auto context = *Context::create(engine);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) inputs.push_back(random_tensor(DType::f32, shapes[i], 7 + i));
  const auto expected = *ir::interpret(*ir::parse_graph(text), inputs);
  const auto outputs = run_engine(*context, inputs);
  EXPECT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) expect_close(outputs[i], expected[i], 1e-6);
  std::vector<std::string> kinds;
  for (const RegionReport& region : report.regions) kinds.push_back(region.kind);
  return kinds;
}

using Kinds = std::vector<std::string>;

// %NAME: %from rolled by `shift` along `axis`, as exporters write it.
std::string roll(const std::string& name, const std::string& from, int axis, int shift) {
  return fmt::format(R"(
    %{0}_axis = constant{{value=i64[1]{{{2}}}}}()
    %{0}_zero = constant{{value=i64[1]{{0}}}}()
    %{0}_at = constant{{value=i64[1]{{{3}}}}}()
    %{0}_far = constant{{value=i64[1]{{9223372036854775807}}}}()
    %{0}_behind = slice(%{1}, %{0}_at, %{0}_far, %{0}_axis)
    %{0}_before = slice(%{1}, %{0}_zero, %{0}_at, %{0}_axis)
    %{0} = concat{{axis={2}}}(%{0}_behind, %{0}_before)
)",
                     name, from, axis, shift);
}

TEST(Boxes, OneRollIsTwoCopies) {
  EXPECT_EQ(steps_of("    input %x: f32[2, 8, 5]" + roll("r", "x", 1, 3) + "    output %r", {{2, 8, 5}}),
            Kinds({"copy", "copy"}));
}

TEST(Boxes, RollsAlongTwoAxesAreOnePass) {
  const std::string body =
      "    symbol n in [1, 3]\n    input %x: f32[n, 8, 9, 5]" + roll("r", "x", 1, 3) + roll("s", "r", 2, 4);
  EXPECT_EQ(steps_of(body + "    output %s", {{2, 8, 9, 5}}), Kinds(4, "pointwise"));
  EXPECT_EQ(steps_of(body + "    output %s\n    output %r", {{2, 8, 9, 5}}).size(), 4u);  // as they are written
}

TEST(Boxes, SumsReadRolls) {
  EXPECT_EQ(steps_of("    input %x: f32[2, 8, 9, 5]\n    input %y: f32[2, 8, 9, 5]" + roll("r", "x", 1, -2) +
                         roll("s", "r", 2, 2) + "    %z = elementwise{op=add}(%y, %s)\n    output %z",
                     {{2, 8, 9, 5}, {2, 8, 9, 5}}),
            Kinds(4, "pointwise"));
}

// [n, 14, 21, c] in windows of 7 x 7 after a roll by 3: for each axis all windows but the last, and that in two.
TEST(Boxes, ShiftedWindows) {
  const std::string body =
      "    symbol n in [1, 3]\n    input %x: f32[n, 14, 21, 600]" + roll("r", "x", 1, 3) + roll("s", "r", 2, 3) + R"(
    %windows = constant{value=i64[6]{-1, 2, 7, 3, 7, 600}}()
    %rows = constant{value=i64[3]{-1, 49, 600}}()
    %w = reshape(%s, %windows)
    %t = transpose{perm=[0, 1, 3, 2, 4, 5]}(%w)
    %o = reshape(%t, %rows)
    %z = activation{op=relu}(%o)
    output %z)";
  EXPECT_EQ(steps_of(body, {{2, 14, 21, 600}}), Kinds(9, "pointwise"));
}

// The parts are written in place by what makes them.
TEST(Boxes, JoinedResultsStayInPlace) {
  EXPECT_EQ(steps_of(R"(
    input %x: f32[2, 4, 6, 6]
    %a = activation{op=relu}(%x)
    %b = activation{op=sigmoid}(%x)
    %c = concat{axis=1}(%a, %b)
    %d = unary{op=abs}(%c)
    output %d)",
                     {{2, 4, 6, 6}}),
            Kinds(3, "pointwise"));
}

// Rolls at random places, along random axes, in between transpositions and sums.
TEST(Boxes, RandomRolls) {
  std::mt19937 random(3);
  const auto number = [&](int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); };
  for (int round = 0; round < 40; ++round) {
    Dims dims = {2, 3 + number(4), 3 + number(4), 4};
    std::string body =
        fmt::format("    input %x: f32[{}]\n    input %y: f32[{}]", fmt::join(dims, ", "), fmt::join(dims, ", "));
    const Dims given = dims;
    std::string last = "x";
    for (int i = 0, n = 1 + number(4); i < n; ++i) {
      const int axis = number(4);
      const auto extent = static_cast<int>(dims[static_cast<size_t>(axis)]);
      body += roll(fmt::format("r{}", i), last, axis, 1 + number(extent - 1));
      last = fmt::format("r{}", i);
      if (number(3) == 0) {
        body += fmt::format("    %t{} = transpose{{perm=[0, 2, 1, 3]}}(%{})\n", i, last);
        last = fmt::format("t{}", i);
        std::swap(dims[1], dims[2]);
      }
    }
    if (dims == given && number(2) == 0) {
      body += fmt::format("    %z = elementwise{{op=add}}(%{}, %y)\n", last);
      last = "z";
    }
    SCOPED_TRACE(body);
    steps_of(body + fmt::format("    %a = unary{{op=abs}}(%y)\n    output %{}\n    output %a", last), {given, given});
  }
}

}  // namespace
}  // namespace lathe
