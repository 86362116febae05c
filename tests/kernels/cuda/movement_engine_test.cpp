// SPDX-License-Identifier: Apache-2.0
// Graphs whose expressions read and write in another order, built for the emulator.
#include <gtest/gtest.h>

#include "kernels/cuda/emulated_engine.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kLeastPixel = 4;

TEST(MovementEngines, CastsWriteTheLayoutThatConvolutionsRead) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %x: f32[n, 8, 5, 7]
    %w = constant{value=f16[8, 8, 3, 3]{~1}}()
    %c = cast{to=f16}(%x)
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%c, %w)
    %p = pooling{op=max, window=[2, 2], stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%y)
    %f = cast{to=f32}(%p)
    output %f)",
                            {{3, 8, 5, 7}}, 4e-3, kLeastPixel),
            Kernels({"copy", "conv", "pooling", "copy"}));
}

TEST(MovementEngines, ExpressionsWriteTheLayoutThatIsRead) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %x: f16[n, 8, 5, 7]
    input %g: f16[n, 8, 1, 1]
    %w = constant{value=f16[8, 8, 3, 3]{~1}}()
    %c = elementwise{op=mul}(%x, %g)
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%c, %w)
    %p = pooling{op=max, window=[2, 2], stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%y)
    %f = activation{op=silu}(%p)
    output %f)",
                            {{3, 8, 5, 7}, {3, 8, 1, 1}}, 4e-3, kLeastPixel),
            Kernels({"pointwise", "conv", "pooling", "copy"}));
}

TEST(MovementEngines, TransposedOperandsAndResults) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 9]
    input %x: f16[n, 6, 33]
    input %y: f32[33, n, 6]
    input %b: f32[6, 1]
    %t = transpose{perm=[1, 2, 0]}(%y)
    %c = cast{to=f32}(%x)
    %s = elementwise{op=add}(%c, %t)
    %a = activation{op=silu}(%s)
    %m = elementwise{op=mul}(%a, %b)
    %z = transpose{perm=[2, 0, 1]}(%m)
    %h = cast{to=f16}(%z)
    output %h)",
                            {{5, 6, 33}, {33, 5, 6}, {6, 1}}, 4e-3),
            Kernels({"pointwise"}));
}

// One value may be read in its own order and in another.
TEST(MovementEngines, AValueAndItsTransposition) {
  EXPECT_EQ(run_on_emulator(R"(
    input %x: f32[12, 12]
    %t = transpose{perm=[1, 0]}(%x)
    %s = elementwise{op=sub}(%x, %t)
    %u = elementwise{op=mul}(%s, %x)
    output %u)",
                            {{12, 12}}),
            Kernels({"pointwise"}));
}

// Padding is read by the expression that follows it, in the layout of what it pads.
TEST(MovementEngines, ExpressionsReadPadded) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %x: f16[n, 8, 5, 7]
    input %y: f16[n, 8, 8, 9]
    %w = constant{value=f16[8, 8, 3, 3]{~1}}()
    %pads = constant{value=i64[8]{0, 0, 1, 2, 0, 0, 2, 0}}()
    %half = constant{value=f16[]{0.5}}()
    %c = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
    %p = pad(%c, %pads, %half)
    %s = elementwise{op=add}(%p, %y)
    %r = activation{op=relu}(%s)
    %z = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%r, %w)
    %f = cast{to=f32}(%z)
    output %f)",
                            {{3, 8, 5, 7}, {3, 8, 8, 9}}, 4e-3, kLeastPixel),
            Kernels({"copy", "conv", "pointwise", "conv", "copy"}));
}

// A value that is padded twice, read as it is, and moved.
TEST(MovementEngines, PaddingAmongMovements) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %x: f32[n, 6, 8]
    %left = constant{value=i64[2]{2, 0}}()
    %right = constant{value=i64[2]{0, 2}}()
    %axis = constant{value=i64[1]{-1}}()
    %a = pad(%x, %left, _, %axis)
    %b = pad(%x, %right, _, %axis)
    %s = elementwise{op=sub}(%a, %b)
    %t = transpose{perm=[0, 2, 1]}(%s)
    %e = unary{op=abs}(%t)
    output %e)",
                            {{3, 6, 8}}),
            Kernels({"pointwise"}));
}

// Both paddings are of one axis in the end: its bounds are those of what is read.
TEST(MovementEngines, PaddingOfPadding) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %x: f32[n, 6, 8]
    %pads = constant{value=i64[6]{0, 0, 2, 0, 0, 1}}()
    %more = constant{value=i64[6]{0, 3, 1, 0, 0, 2}}()
    %a = pad(%x, %pads)
    %t = transpose{perm=[0, 2, 1]}(%a)
    %b = pad(%t, %more)
    %e = unary{op=abs}(%b)
    output %e)",
                            {{3, 6, 8}}),
            Kernels({"pointwise"}));
}

// Where an axis is padded that a reshape then splits, the padding stands alone.
TEST(MovementEngines, PaddingThatIsSplit) {
  EXPECT_EQ(run_on_emulator(R"(
    input %x: f32[6, 10]
    %pads = constant{value=i64[4]{0, 2, 0, 0}}()
    %shape = constant{value=i64[3]{6, 4, 3}}()
    %p = pad(%x, %pads)
    %r = reshape(%p, %shape)
    %t = transpose{perm=[2, 0, 1]}(%r)
    %e = unary{op=abs}(%t)
    output %e)",
                            {{6, 10}}),
            Kernels({"pointwise", "pointwise"}));
}

// Every second pixel in each direction, as channels: a copy for each, to where it belongs.
TEST(MovementEngines, StridedSlicesAreJoined) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %x: f16[n, 3, 8, 10]
    %w = constant{value=f16[8, 12, 3, 3]{~1}}()
    %a = constant{value=i64[2]{0, 0}}()
    %b = constant{value=i64[2]{1, 0}}()
    %c = constant{value=i64[2]{0, -9}}()
    %d = constant{value=i64[2]{-7, 1}}()
    %far = constant{value=i64[2]{9223372036854775807, 9223372036854775807}}()
    %axes = constant{value=i64[2]{2, -1}}()
    %steps = constant{value=i64[2]{2, 2}}()
    %p = slice(%x, %a, %far, %axes, %steps)
    %q = slice(%x, %b, %far, %axes, %steps)
    %r = slice(%x, %c, %far, %axes, %steps)
    %s = slice(%x, %d, %far, %axes, %steps)
    %t = concat{axis=1}(%p, %q, %r, %s)
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%t, %w)
    %f = cast{to=f32}(%y)
    output %f)",
                            {{3, 3, 8, 10}}, 4e-3, kLeastPixel),
            Kernels({"copy", "copy", "copy", "copy", "conv", "copy"}));
}

// An expression reads parts of memory with steps, and the same memory as it is.
TEST(MovementEngines, ExpressionsReadWithSteps) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %x: f32[n, 12, 9]
    input %y: f32[n, 4, 9]
    %start = constant{value=i64[1]{2}}()
    %end = constant{value=i64[1]{12}}()
    %axis = constant{value=i64[1]{1}}()
    %step = constant{value=i64[1]{3}}()
    %s = slice(%x, %start, %end, %axis, %step)
    %a = activation{op=silu}(%s)
    %b = elementwise{op=mul}(%a, %y)
    %t = transpose{perm=[0, 2, 1]}(%b)
    output %t
    %e = unary{op=abs}(%x)
    output %e)",
                            {{3, 12, 9}, {3, 4, 9}}),
            Kernels({"pointwise", "pointwise"}));
}

// Pixels of few channels are not stored by what computes them.
TEST(MovementEngines, PixelShuffleOfThreeChannels) {
  for (const char* mode : {"dcr", "crd"})
    EXPECT_EQ(run_on_emulator(fmt::format(R"(
    symbol n in [1, 3]
    input %x: f16[n, 8, 5, 7]
    %w = constant{{value=f16[12, 8, 1, 1]{{~1}}}}()
    %y = convolution{{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}}(%x, %w)
    %d = depth_to_space{{block=2, mode={}}}(%y)
    %r = activation{{op=relu}}(%d)
    %f = cast{{to=f32}}(%r)
    output %f)",
                                          mode),
                              {{2, 8, 5, 7}}, 4e-3),
              Kernels({"copy", "conv", "pointwise"}));
}

// A convolution, its activation, the shuffle in one of its spellings, what follows, and the next convolution.
std::string upsampled(const std::string& shuffle, const std::string& end) {
  return R"(
    symbol n in [1, 3]
    input %x: f16[n, 8, 5, 7]
    %w = constant{value=f16[32, 8, 3, 3]{~1}}()
    %b = constant{value=f16[32]{~2}}()
    %v = constant{value=f16[8, 8, 1, 1]{~3}}()
    %c = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w, %b)
    %y = activation{op=relu}(%c)
)" + shuffle +
         R"(    %e = activation{op=silu}(%d)
)" + end;
}

constexpr const char* kDcr = "    %d = depth_to_space{block=2, mode=dcr}(%y)\n";
constexpr const char* kCrd = "    %d = depth_to_space{block=2, mode=crd}(%y)\n";
constexpr const char* kReshaped = R"(
    %s = constant{value=i64[6]{0, 8, 2, 2, 5, 7}}()
    %u = constant{value=i64[4]{0, 8, 10, 14}}()
    %r = reshape(%y, %s)
    %t = transpose{perm=[0, 1, 4, 2, 5, 3]}(%r)
    %d = reshape(%t, %u)
)";
constexpr const char* kNext = R"(
    %z = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%e, %v)
    %f = cast{to=f32}(%z)
    output %f)";

TEST(MovementEngines, ConvolutionsShufflePixels) {
  for (const char* shuffle : {kDcr, kCrd, kReshaped})
    EXPECT_EQ(run_on_emulator(upsampled(shuffle, kNext), {{2, 8, 5, 7}}, 8e-3, kLeastPixel),
              Kernels({"copy", "conv", "conv", "copy"}));
}

// The caller wants planes: one pass makes them of the convolution's result.
TEST(MovementEngines, ShuffledPixelsThatLeave) {
  for (const char* shuffle : {kDcr, kCrd, kReshaped})
    EXPECT_EQ(run_on_emulator(upsampled(shuffle, "    %f = cast{to=f32}(%e)\n    output %f"), {{2, 8, 5, 7}}, 8e-3,
                              kLeastPixel),
              Kernels({"copy", "conv", "pointwise"}));
}

// The channels before they are shuffled are wanted, too.
TEST(MovementEngines, AShuffleWithASecondReader) {
  EXPECT_EQ(
      run_on_emulator(upsampled(kCrd, fmt::format("{}\n    output %y", kNext)), {{2, 8, 5, 7}}, 8e-3, kLeastPixel),
      Kernels({"copy", "conv", "pointwise", "conv", "copy", "copy"}));
}

// Whatever else reads an image gets it channels-last.
TEST(MovementEngines, ShuffledPixelsOfAPool) {
  EXPECT_EQ(run_on_emulator(upsampled(kCrd, R"(
    %p = pooling{op=max, window=[2, 2], stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%e)
    output %p)"),
                            {{2, 8, 5, 7}}, 8e-3, kLeastPixel),
            Kernels({"copy", "conv", "pooling", "copy"}));
}

// Heads of a convolution by one tap, each with its pixels as rows.
TEST(MovementEngines, ConvolutionsWriteHeads) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 3]
    input %x: f16[n, 8, 6, 5]
    input %k: f16[n, 2, 40, 16]
    %w = constant{value=f16[32, 8, 1, 1]{~1}}()
    %s = constant{value=i64[4]{0, 2, 16, 30}}()
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%x, %w)
    %r = reshape(%y, %s)
    %t = transpose{perm=[0, 1, 3, 2]}(%r)
    %z = attention{scale=0.25}(%t, %k, %k)
    output %z)",
                            {{2, 8, 6, 5}, {2, 2, 40, 16}}, 8e-3, kLeastPixel),
            Kernels({"copy", "conv", "attention"}));
}

TEST(MovementEngines, SpaceToDepth) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 3]
    input %x: f32[n, 3, 8, 10]
    %a = elementwise{op=mul}(%x, %x)
    %d = space_to_depth{block=2}(%a)
    output %d)",
                            {{2, 3, 8, 10}}),
            Kernels({"pointwise"}));
}

// Channels are shuffled by a copy, not by two.
TEST(MovementEngines, ShuffledChannels) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 3]
    input %x: f32[n, 6, 4, 4]
    %g = constant{value=i64[5]{0, 2, 3, 4, 4}}()
    %c = constant{value=i64[4]{0, 6, 4, 4}}()
    %r = reshape(%x, %g)
    %t = transpose{perm=[0, 2, 1, 3, 4]}(%r)
    %y = reshape(%t, %c)
    output %y)",
                            {{2, 6, 4, 4}}),
            Kernels({"copy"}));
}

// What is moved and not computed with may be of any type.
TEST(MovementEngines, IntegersAreCopied) {
  EXPECT_EQ(run_on_emulator(R"(
    input %x: i16[2, 4, 6, 6]
    %d = depth_to_space{block=2, mode=dcr}(%x)
    output %d)",
                            {{2, 4, 6, 6}}),
            Kernels({"copy"}));
}

// Heads of a product, with the bias before them and a cast behind.
std::string heads(int64_t width) {
  return fmt::format(R"(
    symbol n in [1, 4]
    input %x: f16[n, 21, 24]
    input %p: f32[3, 1, {0}]
    %w = constant{{value=f16[24, {1}]{{~1}}}}()
    %b = constant{{value=f16[{1}]{{~2}}}}()
    %s = constant{{value=i64[4]{{0, 21, 3, {0}}}}}()
    %m = matmul(%x, %w)
    %a = elementwise{{op=add}}(%m, %b)
    %r = reshape(%a, %s)
    %t = transpose{{perm=[0, 2, 1, 3]}}(%r)
    %f = cast{{to=f32}}(%t)
    %y = elementwise{{op=mul}}(%f, %p)
    output %y)",
                     width, 3 * width);
}

TEST(MovementEngines, HeadsAreWrittenInPlace) {
  EXPECT_EQ(run_on_emulator(heads(16), {{2, 21, 24}, {3, 1, 16}}, 4e-3), Kernels({"gemm"}));
}

// The result's halves of a vector are no rows of their own.
TEST(MovementEngines, HeadsThatNoKernelWrites) {
  EXPECT_EQ(run_on_emulator(heads(7), {{2, 21, 24}, {3, 1, 7}}, 4e-3), Kernels({"gemm", "pointwise"}));
}

// Patches become rows, with a bias and an embedding of each place: the convolution writes its channels last anyway.
TEST(MovementEngines, PatchesBecomeRows) {
  for (const char* images : {"n", "1"})
    EXPECT_EQ(run_on_emulator(fmt::format(R"(
    symbol n in [1, 3]
    input %x: f16[{}, 8, 6, 10]
    input %e: f16[1, 15, 16]
    %w = constant{{value=f16[16, 8, 2, 2]{{~1}}}}()
    %b = constant{{value=f16[16]{{~2}}}}()
    %s = constant{{value=i64[3]{{0, 0, -1}}}}()
    %y = convolution{{stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}}(%x, %w, %b)
    %r = reshape(%y, %s)
    %t = transpose{{perm=[0, 2, 1]}}(%r)
    %z = elementwise{{op=add}}(%t, %e)
    output %z)",
                                          images),
                              {{images[0] == 'n' ? 2 : 1, 8, 6, 10}, {1, 15, 16}}, 4e-3, kLeastPixel),
              Kernels({"copy", "conv"}));
}

// Heads are put together by what computes them.
TEST(MovementEngines, AttentionJoinsHeads) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %q: f16[n, 3, 20, 16]
    input %k: f16[n, 3, 37, 16]
    input %v: f16[n, 3, 37, 16]
    %w = constant{value=f16[48, 24]{~1}}()
    %s = constant{value=i64[3]{0, 0, 48}}()
    %y = attention{scale=0.25}(%q, %k, %v)
    %t = transpose{perm=[0, 2, 1, 3]}(%y)
    %r = reshape(%t, %s)
    %z = matmul(%r, %w)
    output %z)",
                            {{2, 3, 20, 16}, {2, 3, 37, 16}, {2, 3, 37, 16}}, 4e-3),
            Kernels({"attention", "gemm"}));
}

// One product makes queries, keys and values, which are slices of its result.
TEST(MovementEngines, QueriesKeysAndValues) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %x: f16[n, 20, 24]
    %w = constant{value=f16[24, 96]{~1}}()
    %s = constant{value=i64[5]{0, 0, 3, 2, 16}}()
    %c0 = constant{value=i64[]{0}}()
    %c1 = constant{value=i64[]{1}}()
    %c2 = constant{value=i64[]{2}}()
    %m = matmul(%x, %w)
    %r = reshape(%m, %s)
    %t = transpose{perm=[2, 0, 3, 1, 4]}(%r)
    %q = gather(%t, %c0)
    %k = gather(%t, %c1)
    %v = gather(%t, %c2)
    %y = attention{scale=0.25}(%q, %k, %v)
    output %y)",
                            {{2, 20, 24}}, 4e-3),
            Kernels({"gemm", "attention"}));
}

// Rolled along both axes of pixels, as shifted windows are: four boxes, not two copies for each axis and a sum.
TEST(MovementEngines, SumsReadRolls) {
  const auto roll = [](const char* name, const char* from, int axis) {
    return fmt::format(R"(
    %{0}a = constant{{value=i64[1]{{{2}}}}}()
    %{0}z = constant{{value=i64[1]{{0}}}}()
    %{0}s = constant{{value=i64[1]{{-3}}}}()
    %{0}f = constant{{value=i64[1]{{9223372036854775807}}}}()
    %{0}p = slice(%{1}, %{0}s, %{0}f, %{0}a)
    %{0}q = slice(%{1}, %{0}z, %{0}s, %{0}a)
    %{0} = concat{{axis={2}}}(%{0}p, %{0}q))",
                       name, from, axis);
  };
  EXPECT_EQ(run_on_emulator("    symbol n in [1, 4]\n    input %x: f16[n, 8, 7, 6]\n    input %y: f16[n, 8, 7, 6]" +
                                roll("r", "x", 1) + roll("s", "r", 2) +
                                "\n    %t = elementwise{op=add}(%s, %y)\n    output %t",
                            {{2, 8, 7, 6}, {2, 8, 7, 6}}),
            Kernels(4, "pointwise"));
}

}  // namespace
}  // namespace lathe::cuda
