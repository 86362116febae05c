// SPDX-License-Identifier: Apache-2.0
// Graphs whose products and attention read operands in another order than they lie in, built for the emulator.
#include <gtest/gtest.h>

#include "kernels/cuda/emulated_engine.h"

namespace lathe::cuda {
namespace {

// Heads of the network's input are put together by what reads them, in two ways.
TEST(ReadingEngines, JoinedHeadsAreReadInPlace) {
  const auto body = [](const char* type, const char* rows) {
    return fmt::format(R"(
    symbol n in [1, 4]
    symbol l in [1, 64]
    input %x: {0}[n, 3, l, 16]
    input %b: {0}[24]
    %w = constant{{value={0}[48, 24]{{~1}}}}()
    %s = constant{{value={1}}}()
    %t = transpose{{perm=[0, 2, 1, 3]}}(%x)
    %r = reshape(%t, %s)
    %z = matmul(%r, %w)
    %a = elementwise{{op=add}}(%z, %b)
    %y = activation{{op=relu}}(%a)
    output %y)",
                       type, rows);
  };
  const std::vector<Dims> dims = {{2, 3, 21, 16}, {24}};
  EXPECT_EQ(run_on_emulator(body("f16", "i64[3]{0, 0, 48}"), dims, 4e-3), Kernels({"gemm"}));
  EXPECT_EQ(run_on_emulator(body("f32", "i64[2]{-1, 48}"), dims), Kernels({"gemm"}));
}

// The heads are wanted by themselves, too.
TEST(ReadingEngines, HeadsOfAttentionWithASecondReader) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %q: f16[n, 3, 20, 16]
    input %k: f16[n, 3, 37, 16]
    input %v: f16[n, 3, 37, 16]
    input %w: f16[48, 24]
    %s = constant{value=i64[3]{0, 0, 48}}()
    %y = attention{scale=0.25}(%q, %k, %v)
    %t = transpose{perm=[0, 2, 1, 3]}(%y)
    %r = reshape(%t, %s)
    %z = matmul(%r, %w)
    output %y
    output %z)",
                            {{2, 3, 20, 16}, {2, 3, 37, 16}, {2, 3, 37, 16}, {48, 24}}, 4e-3),
            Kernels({"attention", "gemm"}));
}

// Heads that no vector fits are copied.
TEST(ReadingEngines, HeadsThatNoKernelReads) {
  EXPECT_EQ(run_on_emulator(R"(
    input %x: f16[2, 3, 21, 6]
    input %w: f16[18, 24]
    %s = constant{value=i64[3]{0, 0, 18}}()
    %t = transpose{perm=[0, 2, 1, 3]}(%x)
    %r = reshape(%t, %s)
    %z = matmul(%r, %w)
    output %z)",
                            {{2, 3, 21, 6}, {18, 24}}, 4e-3),
            Kernels({"copy", "gemm"}));
}

// Scores of heads, and what they weigh: the factors are views of [n, rows, heads, width].
TEST(ReadingEngines, TransposedFactorsAreReadInPlace) {
  EXPECT_EQ(run_on_emulator(R"(
    symbol n in [1, 4]
    input %q: f16[n, 20, 3, 16]
    input %k: f16[n, 40, 3, 16]
    input %v: f16[n, 40, 3, 16]
    input %w: f16[48, 24]
    %s = constant{value=i64[3]{0, 0, 48}}()
    %a = transpose{perm=[0, 2, 1, 3]}(%q)
    %b = transpose{perm=[0, 2, 3, 1]}(%k)
    %c = transpose{perm=[0, 2, 1, 3]}(%v)
    %p = matmul(%a, %b)
    %m = softmax{axis=3}(%p)
    %y = matmul(%m, %c)
    %t = transpose{perm=[0, 2, 1, 3]}(%y)
    %r = reshape(%t, %s)
    %z = matmul(%r, %w)
    output %z)",
                            {{2, 20, 3, 16}, {2, 40, 3, 16}, {2, 40, 3, 16}, {48, 24}}, 4e-3),
            Kernels({"gemm", "softmax", "gemm", "gemm"}));
}

// One factor cannot be read where it lies; the other is.
TEST(ReadingEngines, OneFactorIsCopied) {
  EXPECT_EQ(run_on_emulator(R"(
    input %x: f16[2, 3, 21, 16]
    input %y: f16[6, 24, 8]
    %s = constant{value=i64[3]{0, 0, 48}}()
    %u = constant{value=i64[2]{48, 24}}()
    %t = transpose{perm=[0, 2, 1, 3]}(%x)
    %r = reshape(%t, %s)
    %v = transpose{perm=[0, 2, 1]}(%y)
    %w = reshape(%v, %u)
    %z = matmul(%r, %w)
    output %z)",
                            {{2, 3, 21, 16}, {6, 24, 8}}, 4e-3),
            Kernels({"copy", "gemm"}));
}

// Queries, keys and values of [n, rows, heads, width], of which one is joined with its neighbours.
TEST(ReadingEngines, AttentionReadsWhatIsTransposed) {
  for (const char* type : {"f16", "f32"})
    EXPECT_EQ(run_on_emulator(fmt::format(R"(
    symbol n in [1, 4]
    input %q: {0}[n, 20, 3, 16]
    input %k: {0}[n, 37, 48]
    input %v: {0}[37, n, 3, 16]
    %s = constant{{value=i64[4]{{0, 0, 3, 16}}}}()
    %h = reshape(%k, %s)
    %a = transpose{{perm=[0, 2, 1, 3]}}(%q)
    %b = transpose{{perm=[0, 2, 1, 3]}}(%h)
    %c = transpose{{perm=[1, 2, 0, 3]}}(%v)
    %y = attention{{scale=0.25}}(%a, %b, %c)
    output %y)",
                                          type),
                              {{2, 20, 3, 16}, {2, 37, 48}, {37, 2, 3, 16}}, 4e-3),
              Kernels({"attention"}));
}

// Keys as columns are copied; queries are read where they lie.
TEST(ReadingEngines, AttentionOfTransposedKeys) {
  EXPECT_EQ(run_on_emulator(R"(
    input %q: f16[2, 20, 3, 16]
    input %k: f16[2, 3, 16, 37]
    input %v: f16[2, 3, 37, 16]
    %a = transpose{perm=[0, 2, 1, 3]}(%q)
    %b = transpose{perm=[0, 1, 3, 2]}(%k)
    %y = attention{scale=0.25}(%a, %b, %v)
    output %y)",
                            {{2, 20, 3, 16}, {2, 3, 16, 37}, {2, 3, 37, 16}}, 4e-3),
            Kernels({"copy", "attention"}));
}

}  // namespace
}  // namespace lathe::cuda
