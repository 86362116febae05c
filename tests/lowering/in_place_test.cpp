// SPDX-License-Identifier: Apache-2.0
// What is written where it is wanted, or over what is no longer read, and what must be copied.
#include "lowering/engine_fixture.h"

namespace lathe {
namespace {

// Concatenations are written in place, by what makes their parts.
void expect_no_copied_parts(const std::string& text) {
  BuildReport report;
  build_engine(text, native_options(), 2, &report);
  for (const RegionReport& region : report.regions)
    EXPECT_EQ(region.name.find("part"), std::string::npos) << region.name;
}

TEST(InPlace, ConcatIsWrittenInPlace) {
  const std::string text = R"(graph "g" {
    input %x: f32[2, 8, 6, 6]
    %w = constant{value=f32[8, 8, 1, 1]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %w2 = constant{value=f32[16, 8, 3, 3]{~2}}()
    %b = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%a, %w2)
    %c = concat{axis=1}(%a, %b)
    %s, %t = split{axis=1}(%c)
    %u = activation{op=relu}(%t)
    %w3 = constant{value=f32[4, 12, 1, 1]{~3}}()
    %d = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%s, %w3)
    output %d
    output %u
  })";
  check_build(text, {{2, 8, 6, 6}});
  expect_no_copied_parts(text);
}

// A value of which all slices are joined with others lies in the whole from the start.
TEST(InPlace, SlicesThatAreJoinedAgainStayInPlace) {
  const std::string text = R"(graph "g" {
    input %x: f32[2, 8, 6, 6]
    %w = constant{value=f32[16, 8, 1, 1]{~1}}()
    %v = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %s, %t = split{axis=1}(%v)
    %w2 = constant{value=f32[8, 8, 3, 3]{~2}}()
    %m = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%t, %w2)
    %a = elementwise{op=add}(%m, %t)
    %c = concat{axis=1}(%s, %t, %a)
    %w3 = constant{value=f32[8, 24, 1, 1]{~3}}()
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%c, %w3)
    output %y
  })";
  check_build(text, {{2, 8, 6, 6}});
  expect_no_copied_parts(text);
}

// Slices in another order, of a part of the value, or twice, are copied.
TEST(InPlace, OtherSlicesAreCopied) {
  for (const char* parts : {"%t, %s, %x", "%t, %x, %s", "%s, %x, %x", "%s, %t, %v", "%s, %t, %t"}) {
    SCOPED_TRACE(parts);
    check_build(std::string(R"(graph "g" {
    input %x: f32[2, 8, 6, 6]
    %w = constant{value=f32[16, 8, 1, 1]{~1}}()
    %v = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %s, %t = split{axis=1}(%v)
    %c = concat{axis=1}()") +
                    parts + R"()
    %r = activation{op=relu}(%c)
    output %r
  })",
                {{2, 8, 6, 6}});
  }
}

TEST(InPlace, ReshapesThatAreJoinedAreCopiedOnce) {
  const std::string text = R"(graph "g" {
    input %x: f32[2, 8, 6, 4]
    %w = constant{value=f32[12, 8, 1, 1]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %b = convolution{stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %shape = constant{value=i64[3]{2, 12, -1}}()
    %f = reshape(%a, %shape)
    %g = reshape(%b, %shape)
    %c = concat{axis=2}(%f, %g)
    %r = activation{op=sigmoid}(%c)
    output %r
  })";
  check_build(text, {{2, 8, 6, 4}});
  BuildReport report;
  build_engine(text, native_options(), 2, &report);
  EXPECT_EQ(std::count_if(report.regions.begin(), report.regions.end(),
                          [](const RegionReport& region) { return region.kind == "copy"; }),
            3);  // the input, for the convolutions, and the two reshapes
}

TEST(InPlace, ResultsAreWrittenOverDeadOperands) {
  const std::string text = R"(graph "g" {
    input %x: f32[1, 16, 12, 12]
    %w = constant{value=f32[16, 16, 1, 1]{~1}}()
    %a = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %b = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%a, %w)
    %c = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%b, %w)
    %s = elementwise{op=add}(%c, %a)
    %m = reduce{op=mean, axes=[2, 3]}(%s)
    %g = elementwise{op=mul}(%s, %m)
    %d = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%g, %w)
    output %d
  })";
  check_build(text, {{1, 16, 12, 12}});
  const auto engine = build_engine(text, native_options());
  const auto context = *Context::create(engine);
  const size_t image = 16 * 12 * 12 * sizeof(float);
  size_t arena = 0;
  for (const plan::Buffer& buffer : engine->plan().buffers)
    arena += static_cast<size_t>(*buffer.bytes.as_constant()) >= image;
  EXPECT_EQ(arena, 4u) << "x and d channels-last, a (also the sum, also the product), b";
}

// Kernels that run their epilogue in a second pass must not write over its operands.
TEST(InPlace, VarianceByTwoReductions) {
  check_build(R"(graph "g" {
    input %x: f32[6, 40]
    %mean = reduce{op=mean, axes=[1]}(%x)
    %mean2 = elementwise{op=mul}(%mean, %mean)
    %square = elementwise{op=mul}(%x, %x)
    %ms = reduce{op=mean, axes=[1]}(%square)
    %var = elementwise{op=sub}(%ms, %mean2)
    output %var
  })",
              {{6, 40}});
}

// The sum must not be written over the row that it has yet to read for others.
TEST(InPlace, RowsPlusOneOfThem) {
  check_build(R"(graph "g" {
    input %x: f32[600, 40]
    %begin = constant{value=i64[1]{0}}()
    %end = constant{value=i64[1]{1}}()
    %r = softmax(%x)
    %first = slice(%r, %begin, %end)
    %y = elementwise{op=add}(%r, %first)
    %p = softmax(%y)
    output %p
  })",
              {{600, 40}}, 1e-6);
}

}  // namespace
}  // namespace lathe
