// SPDX-License-Identifier: Apache-2.0
// Transpositions between rows of channels and images, most of which are views of the same memory.
#include <gtest/gtest.h>

#include "kernels/cuda/emulated_engine.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kLeastPixel = 4;
constexpr double kTolerance = 8e-3;

Kernels run(const std::string& body, const std::vector<Dims>& dims) {
  return run_on_emulator(body, dims, kTolerance, kLeastPixel);
}

// %t: 16 normalized channels of each pixel, as an image.
constexpr const char* kNormalizedImage = R"(
    symbol n in [1, 4]
    input %x: f16[n, 5, 6, 16]
    %g = constant{value=f16[16]{~1}}()
    %b = constant{value=f16[16]{~2}}()
    %w = constant{value=f16[16, 16, 3, 3]{~3}}()
    %d = constant{value=f16[16, 1, 3, 3]{~4}}()
    %r = layer_normalization{axis=-1, epsilon=1e-5}(%x, %g, %b)
    %t = transpose{perm=[0, 3, 1, 2]}(%r)
)";
constexpr const char* kConvolution =
    "    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%t, %w)\n";
constexpr const char* kDepthwise =
    "    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1], groups=16}(%t, %d)\n";
constexpr const char* kPooling =
    "    %y = pooling{op=max, window=[2, 2], stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%t)\n";
constexpr const char* kRowsLeave = "    %z = transpose{perm=[0, 2, 3, 1]}(%y)\n    output %z";

std::string normalized_image(const std::string& rest) { return kNormalizedImage + rest; }

TEST(ViewEngines, NormalizedChannelsAreAnImage) {
  EXPECT_EQ(run(normalized_image(std::string(kConvolution) + kRowsLeave), {{3, 5, 6, 16}}),
            Kernels({"normalization", "conv"}));
  EXPECT_EQ(run(normalized_image(std::string(kDepthwise) + kRowsLeave), {{3, 5, 6, 16}}),
            Kernels({"normalization", "depthwise"}));
  EXPECT_EQ(run(normalized_image(std::string(kPooling) + kRowsLeave), {{3, 5, 6, 16}}),
            Kernels({"normalization", "pooling"}));
}

// The caller gets it row-major.
TEST(ViewEngines, AnImageThatLeavesToo) {
  EXPECT_EQ(run(normalized_image(std::string(kConvolution) + kRowsLeave + "\n    output %t"), {{2, 5, 6, 16}}),
            Kernels({"normalization", "conv", "copy"}));
  EXPECT_EQ(run(normalized_image("    output %t"), {{2, 5, 6, 16}}), Kernels({"normalization", "copy"}));
}

TEST(ViewEngines, OneReaderNeedsItRowMajor) {
  EXPECT_EQ(run(normalized_image(std::string(kConvolution) + R"(
    %s = constant{value=i64[2]{0, 480}}()
    %m = constant{value=f16[480, 8]{~5}}()
    %q = reshape(%t, %s)
    %p = matmul(%q, %m)
    output %p
)" + kRowsLeave),
                {{2, 5, 6, 16}}),
            Kernels({"normalization", "copy", "gemm", "conv"}));
}

// Two copies would follow to save one.
TEST(ViewEngines, TwoReadersNeedItRowMajor) {
  EXPECT_EQ(run(normalized_image(std::string(kConvolution) + R"(
    %s = constant{value=i64[3]{0, 16, 30}}()
    %q = reshape(%t, %s)
    output %t
    output %q
)" + kRowsLeave),
                {{2, 5, 6, 16}}),
            Kernels({"normalization", "copy", "copy", "conv", "copy"}));
}

TEST(ViewEngines, SlicesOfAView) {
  EXPECT_EQ(run(normalized_image(R"(
    %e = constant{value=f16[8, 8, 1, 1]{~5}}()
    %lo, %hi = split{axis=1}(%t)
    %u = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%hi, %e)
    %y = elementwise{op=add}(%u, %lo)
)" + std::string(kRowsLeave)),
                {{2, 5, 6, 16}}),
            Kernels({"normalization", "conv"}));
}

TEST(ViewEngines, APaddedView) {
  EXPECT_EQ(run(normalized_image(R"(
    %a = constant{value=i64[8]{0, 0, 1, 1, 0, 0, 1, 1}}()
    %o = pad(%t, %a)
    %y = pooling{op=max, window=[2, 2], stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%o)
)" + std::string(kRowsLeave)),
                {{2, 5, 6, 16}}),
            Kernels({"normalization", "pointwise", "pooling"}));
}

TEST(ViewEngines, PartsOfAConcatenation) {
  EXPECT_EQ(run(normalized_image(std::string(kConvolution) + R"(
    %c = concat{axis=1}(%y, %t)
    %v = constant{value=f16[8, 32, 1, 1]{~6}}()
    %u = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%c, %v)
    %z = transpose{perm=[0, 2, 3, 1]}(%u)
    output %z)"),
                {{2, 5, 6, 16}}),
            Kernels({"normalization", "conv", "copy", "conv"}));
}

// What the view is of may itself lie in a larger tensor.
TEST(ViewEngines, AViewOfAPart) {
  EXPECT_EQ(run(normalized_image(std::string(kConvolution) + R"(
    %h = elementwise{op=mul}(%x, %x)
    %c = concat{axis=-1}(%r, %h)
    output %c
)" + kRowsLeave),
                {{2, 5, 6, 16}}),
            Kernels({"normalization", "pointwise", "conv"}));
}

TEST(ViewEngines, NetworkInputs) {
  const auto body = [](int64_t channels) {
    return fmt::format(R"(
    symbol n in [1, 4]
    input %x: f16[n, 7, 9, {0}]
    %w = constant{{value=f16[8, {0}, 3, 3]{{~1}}}}()
    %t = transpose{{perm=[0, 3, 1, 2]}}(%x)
    %y = convolution{{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}}(%t, %w)
    %z = transpose{{perm=[0, 2, 3, 1]}}(%y)
    output %z)",
                       channels);
  };
  EXPECT_EQ(run(body(8), {{2, 7, 9, 8}}), Kernels({"conv"}));
  EXPECT_EQ(run(body(3), {{2, 7, 9, 3}}), Kernels({"copy", "conv"}));  // pixels of few channels are made wider
}

// In another order than that of memory, but the one that is read.
TEST(ViewEngines, TranspositionsWriteWhatIsRead) {
  EXPECT_EQ(run(R"(
    symbol n in [1, 4]
    input %x: f16[n, 7, 9, 8]
    %w = constant{value=f16[8, 8, 3, 3]{~1}}()
    %t = transpose{perm=[0, 3, 2, 1]}(%x)
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%t, %w)
    %z = transpose{perm=[0, 2, 3, 1]}(%y)
    output %z)",
                {{2, 7, 9, 8}}),
            Kernels({"copy", "conv"}));
}

// A convolution's result is read as an image and as rows.
TEST(ViewEngines, PixelsAreRows) {
  const std::string body = R"(
    symbol n in [1, 4]
    input %x: f16[n, 5, 6, 8]
    %g = constant{value=f16[16]{~1}}()
    %w = constant{value=f16[16, 8, 3, 3]{~2}}()
    %v = constant{value=f16[8, 16, 1, 1]{~3}}()
    %i = transpose{perm=[0, 3, 1, 2]}(%x)
    %c = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%i, %w)
    %y = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%c, %v)
    %z = transpose{perm=[0, 2, 3, 1]}(%y)
    %t = transpose{perm=[0, 2, 3, 1]}(%c)
    output %z
)";
  EXPECT_EQ(run(body + "    %l = layer_normalization{axis=-1, epsilon=1e-5}(%t, %g)\n    output %l", {{3, 5, 6, 8}}),
            Kernels({"conv", "conv", "normalization"}));
  EXPECT_EQ(run(body + "    output %t", {{3, 5, 6, 8}}), Kernels({"conv", "conv"}));
  EXPECT_EQ(run(body + "    output %c\n    output %t", {{3, 5, 6, 8}}), Kernels({"conv", "conv", "copy"}));
  EXPECT_EQ(run(body + R"(
    %s = constant{value=i64[3]{0, 30, 16}}()
    %q = reshape(%t, %s)
    output %q)",
                {{3, 5, 6, 8}}),
            Kernels({"conv", "conv"}));
}

// A product that ends as an image, which a convolution and the next sum read.
TEST(ViewEngines, ResidualBlocks) {
  EXPECT_EQ(run(normalized_image(R"(
    %k = constant{value=f16[16, 16]{~5}}()
    %o = constant{value=f16[16]{~6}}()
    %m1 = matmul(%r, %k)
    %a1 = elementwise{op=add}(%m1, %o)
    %t1 = transpose{perm=[0, 3, 1, 2]}(%a1)
    %s1 = elementwise{op=add}(%t1, %t)
    %y = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1], groups=16}(%s1, %d)
    %h = transpose{perm=[0, 2, 3, 1]}(%y)
    %m2 = matmul(%h, %k)
    %t2 = transpose{perm=[0, 3, 1, 2]}(%m2)
    %s2 = elementwise{op=add}(%t2, %s1)
    %p = pooling{op=average, window=[5, 6], stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%s2)
    output %p)"),
                {{2, 5, 6, 16}}),
            Kernels({"normalization", "gemm", "depthwise", "gemm", "pooling"}));
}

// Keys of fewer pixels: tokens become an image, that is convolved, and its pixels are tokens again.
TEST(ViewEngines, TokensAreImages) {
  const auto body = [](const std::string& rest) {
    return R"(
    symbol n in [1, 4]
    input %x: f16[n, 24, 16]
    %g = constant{value=f16[16]{~1}}()
    %w = constant{value=f16[16, 16, 2, 2]{~2}}()
    %m = constant{value=f16[16, 16]{~3}}()
    %si = constant{value=i64[4]{0, 16, 4, 6}}()
    %st = constant{value=i64[3]{0, 16, 6}}()
    %r = layer_normalization{axis=-1, epsilon=1e-5}(%x, %g)
    %q = matmul(%r, %m)
    output %q
    %t = transpose{perm=[0, 2, 1]}(%r)
    %i = reshape(%t, %si)
    %y = convolution{stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%i, %w)
    %f = reshape(%y, %st)
    %o = transpose{perm=[0, 2, 1]}(%f)
    %k = layer_normalization{axis=-1, epsilon=1e-5}(%o, %g)
    output %k
)" + rest;
  };
  EXPECT_EQ(run(body(""), {{3, 24, 16}}), Kernels({"normalization", "gemm", "conv", "normalization"}));
  EXPECT_EQ(run(body(R"(
    %v = constant{value=f16[8, 16, 1, 1]{~4}}()
    %e = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%y, %v)
    %z = transpose{perm=[0, 2, 3, 1]}(%e)
    output %z)"),
                {{3, 24, 16}}),
            Kernels({"normalization", "gemm", "conv", "normalization", "conv"}));
  EXPECT_EQ(run(body("    output %o\n    output %i"), {{1, 24, 16}}),
            Kernels({"normalization", "gemm", "conv", "normalization", "copy"}));
}

// The pixels of a convolution as either dimension of either factor.
TEST(ViewEngines, ProductsReadPixels) {
  const auto body = [](const std::string& rest) {
    return R"(
    symbol n in [1, 4]
    input %x: f16[n, 5, 6, 8]
    input %u: f16[n, 30, 16]
    %w = constant{value=f16[16, 8, 1, 1]{~1}}()
    %s = constant{value=i64[3]{0, 16, 30}}()
    %i = transpose{perm=[0, 3, 1, 2]}(%x)
    %c = convolution{stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%i, %w)
    %r = reshape(%c, %s)
    %f = activation{op=relu}(%r)
)" + rest + "\n    output %p";
  };
  const std::vector<Dims> dims = {{3, 5, 6, 8}, {3, 30, 16}};
  for (const char* product : {"    %p = matmul(%f, %u)", "    %p = matmul(%u, %f)",
                              "    %p = matmul{transpose_a=true, transpose_b=true}(%f, %u)",
                              "    %p = matmul{transpose_a=true, transpose_b=true}(%u, %f)"})
    EXPECT_EQ(run(body(product), dims), Kernels({"conv", "gemm"})) << product;
}

// Columns of an image have gaps between them: their pixels are copied into one dimension.
TEST(ViewEngines, TokensOfColumns) {
  EXPECT_EQ(run(normalized_image(R"(
    %begin = constant{value=i64[1]{1}}()
    %end = constant{value=i64[1]{4}}()
    %three = constant{value=i64[1]{3}}()
    %s = slice(%t, %begin, %end, %three)
    %sf = constant{value=i64[3]{0, 16, 15}}()
    %f = reshape(%s, %sf)
    %k = constant{value=f16[16, 16, 3]{~4}}()
    %y = convolution{stride=[1], pads_begin=[1], pads_end=[1], dilation=[1]}(%f, %k)
    %z = transpose{perm=[0, 2, 1]}(%y)
    output %z)"),
                {{2, 5, 6, 16}}),
            Kernels({"normalization", "copy", "copy", "conv"}));
}

// The same memory is read in two orders at once.
TEST(ViewEngines, SumsWithTheirOwnTransposition) {
  EXPECT_EQ(run(R"(
    symbol n in [1, 3]
    input %x: f16[n, 16, 16]
    %g = constant{value=f16[16]{~1}}()
    %w = constant{value=f16[16, 16, 3]{~2}}()
    %r = layer_normalization{axis=-1, epsilon=1e-5}(%x, %g)
    %t = transpose{perm=[0, 2, 1]}(%r)
    %y = convolution{stride=[1], pads_begin=[1], pads_end=[1], dilation=[1]}(%t, %w)
    %c = transpose{perm=[0, 2, 1]}(%y)
    %s = elementwise{op=add}(%r, %t)
    %p = reduce{op=max, axes=[1]}(%s)
    %q = reduce{op=max, axes=[2]}(%s)
    output %c
    output %p
    output %q)",
                {{3, 16, 16}}),
            Kernels({"normalization", "conv", "reduce", "reduce"}));
}

}  // namespace
}  // namespace lathe::cuda
