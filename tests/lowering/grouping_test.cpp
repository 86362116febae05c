// SPDX-License-Identifier: Apache-2.0
// Which expressions become programs before a kernel, and which do not.
#include "lowering/grouped.h"

namespace lathe {
namespace {

TEST(Grouping, ReductionsComputeWhatTheyRead) {
  const std::string body = R"(
    input %x: f32[4, 64]
    input %y: f32[4, 64]
    input %b: f32[64]
    %p = elementwise{op=mul}(%x, %y)
    %q = elementwise{op=add}(%p, %b)
    %r = reduce{op=mean, axes=[1]}(%q)
    %z = activation{op=relu}(%r)
    output %z)";
  EXPECT_EQ(grouped(body), Lines({"0[in=3; r3=mul r0 r1; r4=add r3 r2; out r4] reduce activation"}));
  EXPECT_EQ(grouped(body, false), Lines({"elementwise elementwise", "reduce activation"}));
}

TEST(Grouping, SquaresAndCasts) {
  EXPECT_EQ(grouped(R"(
    input %x: f16[4, 64]
    %c = cast{to=f32}(%x)
    %p = elementwise{op=mul}(%c, %c)
    %r = reduce{op=sum, axes=[1]}(%p)
    output %r)"),
            Lines({"0[in=1; r1=mul r0 r0; out r1] reduce"}));
}

// What is stored is rounded so; a cast rounds what another instruction, or a kernel's register, is to have.
TEST(Grouping, CastsRoundWhatIsReadOn) {
  const auto body = [](const std::string& casts) {
    return "    input %x: f32[4, 64]\n    input %h: f16[4, 64]\n    input %i: i8[4, 64]\n" + casts +
           "\n    %z = softmax{axis=1}(%y)\n    output %z";
  };
  EXPECT_EQ(grouped(body("    %y = cast{to=f16}(%x)")), Lines({"0[in=1; r1=round_f16 r0; out r1] softmax"}));
  EXPECT_EQ(grouped(body("    %c = cast{to=bf16}(%h)\n    %y = cast{to=f32}(%c)")),
            Lines({"0[in=1; r1=round_bf16 r0; out r1] softmax"}));
  EXPECT_EQ(grouped(body("    %c = cast{to=f16}(%i)\n    %y = cast{to=f32}(%c)")),
            Lines({"0[in=1; out r0] softmax"}));  // f16 has all of i8
  EXPECT_EQ(grouped(body("    %a = activation{op=relu}(%x)\n    %c = cast{to=f16}(%a)\n    %d = cast{to=bf16}(%c)\n"
                         "    %y = cast{to=f32}(%d)")),
            Lines({"0[in=1; r1=relu r0; r2=round_f16 r1; r3=round_bf16 r2; out r3] softmax"}));
}

TEST(Grouping, IntegersAreDequantizedBeforeGlobalPooling) {
  EXPECT_EQ(grouped(R"(
    input %x: i8[2, 8, 5, 5]
    %s = constant{value=f32[]{0.5}}()
    %d = dequantize{to=f32}(%x, %s)
    %p = pooling{op=average, window=[5, 5], stride=[1, 1], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%d)
    output %p)"),
            Lines({"0[in=1; r1=affine r0 0.5 -0; out r1] pooling"}));
}

TEST(Grouping, ResidualsAreReadAsLevels) {
  EXPECT_EQ(grouped(R"(
    input %x: f16[4, 64]
    input %w: f16[64, 64]
    input %r: i8[4, 64]
    %s = constant{value=f32[]{0.5}}()
    %p = matmul(%x, %w)
    %d = dequantize(%r, %s)
    %c = cast{to=f16}(%d)
    %y = elementwise{op=add}(%p, %c)
    output %y)"),
            Lines({"matmul dequantize cast elementwise"}));
}

// Proposed, for each element is read once. Kernels are asked whether they do: tests/kernels/pooling.graph.
TEST(Grouping, PoolingByWindowsMayComputeItsInput) {
  EXPECT_EQ(grouped(R"(
    input %x: f32[2, 8, 6, 6]
    %a = activation{op=silu}(%x)
    %p = pooling{op=max, window=[2, 2], stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%a)
    output %p)"),
            Lines({"0[in=1; r1=silu r0; out r1] pooling"}));
}

TEST(Grouping, ASecondReaderNeedsTheValue) {
  const std::string body = R"(
    input %x: f32[4, 64]
    input %y: f32[4, 64]
    %w = constant{value=f32[64]{~1}}()
    %s = elementwise{op=add}(%x, %y)
    %n = layer_normalization(%s, %w)
    output %n)";
  EXPECT_EQ(grouped(body), Lines({"0[in=2; r2=add r0 r1; out r2] layer_normalization"}));
  EXPECT_EQ(grouped(body + "\n    output %s"), Lines({"elementwise", "layer_normalization"}));
}

constexpr const char* kThreeTensors = R"(
    input %x: f32[4096, 4096]
    input %y: f32[4096, 4096]
    input %z: f32[4096, 4096]
)";
// Of these the launch of a step takes longer than an instruction for each element.
constexpr const char* kThreeSmallTensors = R"(
    input %x: f32[4, 64]
    input %y: f32[4, 64]
    input %z: f32[4, 64]
)";

// Each of them computes it, where it is read once: two reads of one tensor are cheaper than a write and three reads.
TEST(Grouping, ReadersComputeTheSameExpression) {
  const auto body = [](const std::string& expression, const char* inputs = kThreeTensors) {
    return inputs + expression + R"(
    %mean = reduce{op=mean, axes=[1]}(%v)
    %max = reduce{op=max, axes=[1]}(%v)
    output %mean
    output %max)";
  };
  EXPECT_EQ(grouped(body("    %v = activation{op=relu}(%x)")),
            Lines({"0[in=1; r1=relu r0; out r1] reduce", "0[in=1; r1=relu r0; out r1] reduce"}));
  const std::string sum = "    %s = elementwise{op=add}(%x, %y)\n";
  EXPECT_EQ(grouped(body(sum + "    %v = elementwise{op=mul}(%s, %y)")).size(), 2u);
  EXPECT_EQ(grouped(body(sum + "    %v = elementwise{op=mul}(%s, %z)")),
            Lines({"elementwise elementwise", "reduce", "reduce"}));
  const std::string computed = "0[in=3; r3=add r0 r1; r4=mul r3 r2; out r4] reduce";
  EXPECT_EQ(grouped(body(sum + "    %v = elementwise{op=mul}(%s, %z)", kThreeSmallTensors)),
            Lines({computed, computed}));
}

// What is computed twice reads no more than writing the result once would.
TEST(Grouping, NormalizationsComputeFromTwoTensors) {
  const auto body = [](const std::string& op, const char* inputs = kThreeTensors) {
    return inputs + std::string(R"(
    %p = elementwise{op=add}(%x, %y)
    %q = elementwise{op=add}(%p, %z)
    %r = )") +
           op + "(%q)\n    output %r";
  };
  EXPECT_EQ(grouped(body("softmax{axis=-1}")), Lines({"elementwise elementwise", "softmax"}));
  EXPECT_EQ(grouped(body("softmax{axis=-1}", kThreeSmallTensors)),
            Lines({"0[in=3; r3=add r0 r1; r4=add r3 r2; out r4] softmax"}));
  EXPECT_EQ(grouped(body("reduce{op=sum, axes=[1]}")), Lines({"0[in=3; r3=add r0 r1; r4=add r3 r2; out r4] reduce"}));
}

TEST(Grouping, ReductionsOverComputedAxesMayComputeTheirInput) {
  EXPECT_EQ(grouped(R"(
    input %x: f32[4, 64]
    input %axes: i64[1]
    %a = activation{op=silu}(%x)
    %r = reduce{op=sum}(%a, %axes)
    output %r)"),
            Lines({"0[in=1; r1=silu r0; out r1] reduce"}));
}

// An expression of broadcast operands has no tensor to be computed from.
TEST(Grouping, OuterProductsAreWritten) {
  EXPECT_EQ(grouped(R"(
    input %x: f32[4, 1]
    input %y: f32[1, 64]
    %p = elementwise{op=mul}(%x, %y)
    %r = reduce{op=max, axes=[1]}(%p)
    output %r)"),
            Lines({"elementwise", "reduce"}));
}

TEST(Grouping, ProductsComputeTheirLeftOperand) {
  const auto body = [](const std::string& columns, const std::string& before) {
    return R"(
    input %x: f32[4, 16]
    input %y: f32[4, 16]
    %w = constant{value=f32[16, )" +
           columns + "]{~1}}()\n    %p = " + before + "\n    %r = matmul(%p, %w)\n    output %r";
  };
  EXPECT_EQ(grouped(body("8", "activation{op=silu}(%x)")), Lines({"0[in=1; r1=silu r0; out r1] matmul"}));
  EXPECT_EQ(grouped(body("512", "activation{op=silu}(%x)")), Lines({"activation", "matmul"}));
  // Of two tensors, which kernels are asked about (UnsupportedFeature.ProgramsBeforeAnInput).
  EXPECT_EQ(grouped(body("8", "elementwise{op=mul}(%x, %y)")), Lines({"0[in=2; r2=mul r0 r1; out r2] matmul"}));
}

// A product would compute the statistics of a row again for every tile of its columns, so rows are normalised once.
TEST(Grouping, NormalizedRowsAreWrittenBeforeAProduct) {
  EXPECT_EQ(grouped(R"(
    input %x: f32[4, 16]
    input %s: f32[16]
    %w = constant{value=f32[16, 8]{~1}}()
    %n = layer_normalization(%x, %s)
    %a = activation{op=silu}(%n)
    %r = matmul(%a, %w)
    output %r)"),
            Lines({"layer_normalization activation", "matmul"}));
}

// Few rows cost less to normalise again for each tile of columns than a launch of their own does: not many of them, nor
// where others read them, too, nor in f32.
TEST(Grouping, ProductsNormalizeFewRows) {
  const auto body = [](const std::string& type, const std::string& rows, const std::string& last) {
    return "input %x: " + type + "[1, " + rows + ", 64]\n%s = constant{value=" + type +
           "[64]{~2}}()\n%w = constant{value=" + type +
           "[64, 48]{~1}}()\n%n = rms_normalization(%x, %s)\n%r = matmul(%n, %w)\n" +
           "%a = activation{op=silu}(%r)\noutput %a\n" + last;
  };
  const Lines fused = {"0[in=1; out r0] matmul activation"}, apart = {"rms_normalization", "matmul activation"};
  EXPECT_EQ(grouped(body("f16", "1", "")), fused);
  EXPECT_EQ(grouped(body("bf16", "8", "")), fused);
  EXPECT_EQ(grouped(body("f16", "17", "")), apart);
  EXPECT_EQ(grouped(body("f32", "1", "")), apart);
  EXPECT_EQ(grouped(body("f16", "1", "output %n")), apart);
}

// Some hundred rows of a product's result: not fewer, which other kernels multiply, nor more, whose tiles need no
// splits, nor in f32, nor along other rows. Where others read what is normalised, it is written, too, of fewer rows.
TEST(Grouping, ProductsNormalizeTheirResults) {
  const auto body = [](const std::string& type, const std::string& rows, const std::string& axis,
                       const std::string& last) {
    return "input %x: " + type + "[1, " + rows + ", 32]\ninput %r: " + type + "[1, " + rows +
           ", 64]\n%s = constant{value=" + type + "[64]{~2}}()\n%w = constant{value=" + type +
           "[32, 64]{~1}}()\n%p = matmul(%x, %w)\n%t = elementwise{op=add}(%p, %r)\n" +
           "%n = layer_normalization{axis=" + axis + "}(%t, %s, %s)\n%a = activation{op=silu}(%n)\n" +
           "output %n\noutput %a\n" + last;
  };
  const Lines joined = {"matmul elementwise layer_normalization", "activation"},
              both = {"matmul elementwise layer_normalization, beside its result", "activation"},
              apart = {"matmul elementwise", "layer_normalization activation: in=1; r1=silu r0; out r0 r1"};
  EXPECT_EQ(grouped(body("f16", "17", "-1", "")), joined);
  EXPECT_EQ(grouped(body("bf16", "512", "2", "")), joined);
  EXPECT_EQ(grouped(body("f16", "16", "-1", "")), apart);
  EXPECT_EQ(grouped(body("f16", "513", "-1", "")), apart);
  EXPECT_EQ(grouped(body("f32", "100", "-1", "")), apart);
  EXPECT_EQ(grouped(body("f16", "100", "1", "")), apart);
  EXPECT_EQ(grouped(body("f16", "100", "-1", "output %t")), both);
  EXPECT_EQ(grouped(body("f16", "256", "-1", "output %t")), both);
  EXPECT_EQ(grouped(body("f16", "257", "-1", "output %t")), apart);
  EXPECT_EQ(grouped("symbol n in [17, 512]\n" + body("f16", "n", "-1", "")), joined);
  EXPECT_EQ(grouped("symbol n in [1, 512]\n" + body("f16", "n", "-1", "")), apart);
}

// As networks that normalise first have them: the sum is read by its normalisation and by the next sum. Of several
// normalisations one joins; one that something else than constants scales does not.
TEST(Grouping, ProductsNormalizeSumsThatOthersRead) {
  const auto body = [](const std::string& scale, const std::string& last) {
    return "input %x: f16[100, 32]\ninput %r: f16[100, 64]\ninput %g: f16[64]\n%s = constant{value=f16[64]{~2}}()\n"
           "%w = constant{value=f16[32, 64]{~1}}()\n%v = constant{value=f16[64, 64]{~3}}()\n%p = matmul(%x, %w)\n"
           "%t = elementwise{op=add}(%p, %r)\n%n = rms_normalization(%t, " +
           scale +
           ")\n%q = matmul(%n, %v)\n"
           "%u = elementwise{op=add}(%q, %t)\noutput %u\n" +
           last;
  };
  EXPECT_EQ(grouped(body("%s", "")),
            (Lines{"matmul elementwise rms_normalization, beside its result", "matmul elementwise"}));
  EXPECT_EQ(
      grouped(body("%s", "%m = rms_normalization(%t, %s)\noutput %m")),
      (Lines{"matmul elementwise rms_normalization, beside its result", "matmul elementwise", "rms_normalization"}));
  EXPECT_EQ(grouped(body("%g", "")), (Lines{"matmul elementwise", "rms_normalization", "matmul elementwise"}));
}

// Queries are read once, keys and values for each tile of queries.
TEST(Grouping, AttentionComputesItsOperands) {
  const auto body = [](const std::string& queries, const std::string& of) {
    std::string text = "    input %q: f16[2, 4, " + queries + R"(, 32]
    input %k: f16[2, 2, 512, 32]
    input %v: f16[2, 2, 512, 32]
    input %b: f16[32]
    %p = elementwise{op=add}(%)" +
                       of + ", %b)\n    %y = attention{scale=0.25}(%q, %k, %v)\n    output %y";
    const size_t at = text.find("%" + of, text.find("attention"));
    return text.replace(at, 2, "%p");
  };
  EXPECT_EQ(grouped(body("64", "q")), Lines({"0[in=2; r2=add r0 r1; out r2] attention"}));
  EXPECT_EQ(grouped(body("64", "k")), Lines({"1[in=2; r2=add r0 r1; out r2] attention"}));
  EXPECT_EQ(grouped(body("64", "v")), Lines({"2[in=2; r2=add r0 r1; out r2] attention"}));
  EXPECT_EQ(grouped(body("512", "q")), Lines({"0[in=2; r2=add r0 r1; out r2] attention"}));
  EXPECT_EQ(grouped(body("512", "k")), Lines({"elementwise", "attention"}));
}

TEST(Grouping, AttentionComputesAllThree) {
  EXPECT_EQ(grouped(R"(
    input %q: f16[1, 2, 64, 32]
    input %k: f16[1, 2, 64, 32]
    input %v: f16[1, 2, 64, 32]
    input %c: f32[1, 2, 64, 32]
    %a = activation{op=relu}(%q)
    %b = activation{op=silu}(%k)
    %d = cast{to=f16}(%c)
    %y = attention{scale=0.25}(%a, %b, %d)
    output %y)"),
            Lines({"cast", "0[in=1; r1=relu r0; out r1] 1[in=1; r1=silu r0; out r1] attention"}));
}

}  // namespace
}  // namespace lathe
