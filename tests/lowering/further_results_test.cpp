// SPDX-License-Identifier: Apache-2.0
// Which regions write more than one result.
#include "lowering/grouped.h"

namespace lathe {
namespace {

constexpr const char* kNormalized = R"(
    input %x: f16[4, 64]
    input %r: f16[4, 64]
    input %d: f16[]
    %w = constant{value=f16[64]{~1}}()
    %s = constant{value=f16[]{0.25}}()
    %t = constant{value=f16[64]{~2}}()
    %n = layer_normalization(%x, %w))";

Lines regions_of(const std::string& behind) { return grouped(kNormalized + ("\n" + behind)); }

TEST(FurtherResults, LevelsOfRowsThatOthersRead) {
  EXPECT_EQ(regions_of(R"(
    %q = quantize{to=i8}(%n, %s)
    %y = elementwise{op=add}(%n, %r)
    output %q
    output %y)"),
            Lines({"layer_normalization quantize: in=1; r1=affine r0 4 -0; r2=round r1; "
                   "r3=clip r2 -128 127; out r0 r3",
                   "elementwise"}));
}

TEST(FurtherResults, BehindAnEpilogueWithOperandsOfItsOwn) {
  EXPECT_EQ(regions_of(R"(
    %a = elementwise{op=add}(%n, %r)
    %q = quantize{to=f8e4m3fn}(%a, %t)
    output %a
    output %q)"),
            Lines({"layer_normalization elementwise quantize: in=3; r3=add r0 r1; r4=div r3 r2; r5=round_e4m3 r4; "
                   "out r3 r5"}));
}

TEST(FurtherResults, SeveralOfOneResult) {
  EXPECT_EQ(regions_of(R"(
    %p = quantize{to=u8}(%n, %s)
    %m = activation{op=relu}(%n)
    output %n
    output %p
    output %m)"),
            Lines({"layer_normalization quantize activation: in=1; r1=affine r0 4 -0; r2=round r1; "
                   "r3=clip r2 0 255; r4=relu r0; out r0 r3 r4"}));
}

// Of a cast, as it is rounded, once for all that follows.
TEST(FurtherResults, BehindACast) {
  EXPECT_EQ(grouped(R"(
    input %x: f32[4, 64]
    %a = unary{op=neg}(%x)
    %c = cast{to=f16}(%a)
    %y = activation{op=relu}(%c)
    %z = unary{op=abs}(%c)
    output %c
    output %y
    output %z)"),
            Lines({"unary cast activation unary: in=1; r1=neg r0; r2=round_f16 r1; r3=relu r2; r4=abs r2; "
                   "out r2 r3 r4"}));
}

// What comes behind a sum, too.
TEST(FurtherResults, LevelsOfASum) {
  EXPECT_EQ(grouped(R"(
    input %x: f16[4, 64]
    input %r: f16[4, 64]
    %s = constant{value=f16[]{0.5}}()
    %a = elementwise{op=add}(%x, %r)
    %q = quantize{to=i8}(%a, %s)
    output %a
    output %q)"),
            Lines({"elementwise quantize: in=2; r2=add r0 r1; r3=affine r2 2 -0; r4=round r3; r5=clip r4 -128 127; "
                   "out r2 r5"}));
}

// Levels of two scales alone: nothing reads the rows.
TEST(FurtherResults, WithoutAFirstThatNothingElseReads) {
  const std::string levels = R"(
    %p = quantize{to=u8}(%n, %s)
    %q = quantize{to=f8e4m3fn}(%n, %t)
    output %p
    output %q)";
  EXPECT_EQ(regions_of(levels), Lines({"layer_normalization quantize quantize: in=2; r2=affine r0 4 -0; r3=round r2; "
                                       "r4=clip r3 0 255; r5=div r0 r1; r6=round_e4m3 r5; out r4 r6"}));
  EXPECT_EQ(regions_of("    output %n" + levels),
            Lines({"layer_normalization quantize quantize: in=2; r2=affine r0 4 -0; r3=round r2; "
                   "r4=clip r3 0 255; r5=div r0 r1; r6=round_e4m3 r5; out r0 r4 r6"}));
}

// The region stands where its first result is made, which others read before the further node.
TEST(FurtherResults, AreThereBeforeTheirFirstReader) {
  EXPECT_EQ(regions_of(R"(
    %z = softmax{axis=1}(%n)
    %q = quantize{to=i8}(%n, %s)
    output %z
    output %q)"),
            Lines({"layer_normalization quantize: in=1; r1=affine r0 4 -0; r2=round r1; r3=clip r2 -128 127; out r0 r3",
                   "softmax"}));
}

// Alone, it is an epilogue; with a factor that is not known, it may not be ready yet.
TEST(FurtherResults, WhatIsNone) {
  EXPECT_EQ(regions_of(R"(
    %q = quantize{to=i8}(%n, %s)
    output %q)"),
            Lines({"layer_normalization quantize"}));
  EXPECT_EQ(regions_of(R"(
    %q = quantize{to=i8}(%n, %d)
    output %n
    output %q)"),
            Lines({"layer_normalization", "quantize"}));
  EXPECT_EQ(grouped(R"(
    input %x: f16[4, 64]
    %s = constant{value=f16[]{0.5}}()
    %p = softmax{axis=1}(%x)
    %q = quantize{to=i8}(%p, %s)
    output %p
    output %q)"),
            Lines({"softmax", "quantize"}));
}

}  // namespace
}  // namespace lathe
