// SPDX-License-Identifier: Apache-2.0
// Sources of kernels: what is proven about tensors, and the text.
#include "kernels/cuda/source.h"

#include <gtest/gtest.h>

#include "kernels/cuda/collapse.h"
#include "kernels/cuda/emulated_module.h"
#include "kernels/cuda/headers.h"
#include "kernels/cuda/index_space.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {
namespace {

TEST(Source, UnitDimension) {
  EXPECT_EQ(unit_dim(operand(DType::f32, {4, 8, 2, 2})), 3);
  EXPECT_EQ(unit_dim(operand(DType::f32, {4, 8, 2, 2}, Layout::channels_last)), 1);
  EXPECT_EQ(unit_dim(strided_operand(DType::f32, {4, 8}, {16, 2})), -1);
  EXPECT_EQ(unit_dim(strided_operand(DType::f32, {4, 1}, {1, 1})), 0);  // an extent of 1 has no neighbours
  EXPECT_EQ(unit_dim(operand(DType::f32, {})), -1);
}

TEST(Source, VectorsAreAsLongAsStridesProve) {
  EXPECT_EQ(vector_width(operand(DType::f32, {4, 8})), 4);
  EXPECT_EQ(vector_width(operand(DType::f16, {4, 8})), 8);
  EXPECT_EQ(vector_width(operand(DType::i8, {4, 32})), 16);
  EXPECT_EQ(vector_width(operand(DType::f16, {4, 12})), 4);
  EXPECT_EQ(vector_width(operand(DType::f16, {4, 7})), 1);
  EXPECT_EQ(vector_width(operand(DType::f16, {1, 7})), 8);  // a single row starts where the tensor does
  EXPECT_EQ(vector_width(strided_operand(DType::f32, {4, 8}, {10, 1})), 2);
  EXPECT_EQ(vector_width(strided_operand(DType::f32, {4, 8}, {0, 1})), 4);
  EXPECT_EQ(vector_width(strided_operand(DType::f32, {4, 8}, {8, 2})), 1);
  const std::vector<int64_t> symbols = {6};
  const Expr n = Expr::symbol(0);
  EXPECT_EQ(vector_width(symbolic_operand(DType::f32, {4, n}, symbols)), 1);
  EXPECT_EQ(vector_width(symbolic_operand(DType::f32, {4, n * 8}, symbols)), 4);
  EXPECT_EQ(vector_width(symbolic_operand(DType::f32, {n, 16}, symbols)), 4);
}

// Of what is rounded next alone: other quotients are those of the instruction.
TEST(Source, LevelsAreDividedByReciprocals) {
  const auto lines = [](std::string_view text) { return program_lines(*parse_program(text), "float", ""); };
  const std::string levels = lines("in=1; r1=constant 0.3; r2=div r0 r1; r3=round r2; out r3");
  EXPECT_NE(levels.find("r2 = math::divided_by(r0, 0x1.333334p-2f, 0x1.aaaaaap+1f)"), levels.npos) << levels;
  for (const std::string_view other :
       {"in=1; r1=constant 0.3; r2=div r0 r1; out r2", "in=2; r2=div r0 r1; r3=round r2; out r3",
        "in=1; r1=constant 0; r2=div r0 r1; r3=round r2; out r3",
        "in=1; r1=constant 0.3; r2=div r0 r1; r3=round r0; out r3"})
    EXPECT_EQ(lines(other).find("divided_by"), std::string::npos) << other;
}

// Levels on the way are clipped before they are rounded, unless something else reads what is not clipped yet.
TEST(Source, LevelsOnTheWayAreClippedBeforeTheyAreRounded) {
  const auto lines = [](std::string_view text) { return program_lines(*parse_program(text), "float", ""); };
  EXPECT_EQ(lines("in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=affine r3 1 3; r5=clip r4 0 255; r6=neg r5; "
                  "out r6"),
            "const float r1 = instruction::constant(float(0x1.8p-1f));\n"
            "const float r2 = math::quotient_by_parts(math::within(r0, -0x1.2p+1f, 0x1.7ap+7f), 0x1.555554p+0f, "
            "0x1.555556p-24f);\n"
            "const float r3 = math::nearest_level(r2);\n"
            "const float r4 = r3 + 0x1.8p+1f;\n"
            "const float r5 = r4;\n"
            "const float r6 = instruction::neg(r5);\n");
  for (const std::string_view other :
       {"in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=clip r3 -128 127; r5=add r4 r3; out r5",
        "in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=clip r3 -128 127; out r4 r3",
        "in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=clip r2 -128 127; r5=add r4 r3; out r5",
        "in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=clip r3 -0.5 127; out r4",
        "in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=clip r3 -1e9 1e9; out r4",
        "in=1; r1=constant -0.75; r2=div r0 r1; r3=round r2; r4=clip r3 -128 127; out r4",
        "in=1; r1=constant 1e36; r2=div r0 r1; r3=round r2; r4=clip r3 -999 999; out r4"})
    EXPECT_EQ(lines(other).find("nearest_level"), std::string::npos) << lines(other);
}

// Where results are of 16 bits, what costs less is exact enough.
TEST(Source, GelusAreAsExactAsTheirResults) {
  const auto lines = [](Exactness exactness, std::string_view text = "in=1; r1=gelu_erf r0; out r1") {
    return program_lines(*parse_program(text), "float", "", exactness);
  };
  EXPECT_EQ(lines(Exactness::full), "const float r1 = instruction::gelu_erf(r0);\n");
  EXPECT_EQ(lines(Exactness::bits16), "const float r1 = math::gelu_erf_16(r0);\n");
  EXPECT_EQ(lines(Exactness::half), "const float r1 = math::gelu_erf_half(r0);\n");
  EXPECT_EQ(lines(Exactness::float8), "const float r1 = math::gelu_erf_8(r0);\n");
  // What these leave out may be made larger.
  for (const Exactness exactness : {Exactness::half, Exactness::float8})
    EXPECT_TRUE(lines(exactness, "in=2; r2=gelu_erf r0; r3=mul r2 r1; out r3")
                    .starts_with("const float r2 = math::gelu_erf_16(r0);\n"));
}

// What is left of a program when the store rounds: x, and the bounds that its levels are worth.
TEST(Source, LevelsAreClippedBeforeTheyAreRounded) {
  const auto left = [](std::string_view text, DType type = DType::i8) {
    const std::optional<Levels> levels = levels_of(*parse_program(text), type);
    return levels ? fmt::format("{} of {}, {}", levels->instructions, unrounded(*levels), levels->zero) : "";
  };
  EXPECT_EQ(left("in=1; r1=round r0; r2=clip r1 -128 127; out r2"), "0 of r0, 0");
  EXPECT_EQ(
      left("in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=affine r3 1 3; r5=clip r4 0 255; out r5", DType::u8),
      "1 of math::quotient_by_parts(math::within(r0, -0x1.2p+1f, 0x1.7ap+7f), 0x1.555554p+0f, 0x1.555556p-24f), 3");
  EXPECT_EQ(left("in=1; r1=relu r0; r2=affine r1 0.5 -0; r3=round r2; r4=clip r3 -127 127; out r4"),
            "2 of math::above(r2, -0x1.fcp+6f), 0");
  EXPECT_EQ(left("in=1; r1=relu r0; r2=constant 0.5; r3=div r1 r2; r4=round r3; r5=clip r4 -127 127; out r5"),
            "2 of math::above(r0, 0x0p+0f) * 0x1p+1f, 0");
  // The store bounds what the type does.
  EXPECT_EQ(left("in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=clip r3 -128 127; out r4"),
            "1 of math::quotient_by_parts(r0, 0x1.555554p+0f, 0x1.555556p-24f), 0");
  EXPECT_EQ(left("in=1; r1=constant 0.75; r2=div r0 r1; r3=round r2; r4=clip r3 -128 126; out r4"),
            "1 of math::quotient_by_parts(math::within(r0, -0x1.8p+6f, 0x1.7ap+6f), 0x1.555554p+0f, 0x1.555556p-24f), "
            "0");
  for (const std::string_view other :
       {"in=1; r1=round r0; r2=clip r1 -128 128; out r2", "in=1; r1=round r0; r2=clip r1 -128.5 127; out r2",
        "in=1; r1=round r0; out r1", "in=1; r1=clip r0 -128 127; out r1",
        "in=1; r1=round r0; r2=affine r1 2 0; r3=clip r2 -128 127; out r3",
        "in=1; r1=round r0; r2=clip r1 -128 127; r3=add r1 r2; out r3",
        "in=1; r1=round r0; r2=clip r1 -128 127; out r2 r1", "in=1; r1=round r0; r2=clip r1 -128 127; out r1 r2"})
    EXPECT_EQ(left(other), "") << other;
  EXPECT_EQ(left("in=1; r1=round r0; r2=clip r1 -128 127; out r2", DType::f16), "");
  EXPECT_EQ(left("in=2; r2=add r0 r1; r3=round r2; r4=clip r3 -128 127; out r2 r4"),  // of two results, the last
            "1 of r2, 0");
  EXPECT_EQ(left("in=1; r1=constant 0.5; r2=div r0 r1; r3=round_e4m3 r2; out r3", DType::f8e4m3fn),
            "1 of math::quotient_within(math::within(r0, -0x1.cp+7f, 0x1.cp+7f), 0x1p-1f, 0x1p+1f), 0");
  EXPECT_EQ(left("in=1; r1=relu r0; r2=round_e5m2 r1; out r2", DType::f8e5m2),
            "1 of math::within(r0, 0x0p+0f, 0x1.cp+15f), 0");
  // GELUs, unless something else bounds them.
  EXPECT_EQ(left("in=1; r1=gelu_erf r0; r2=constant 0.02; r3=div r1 r2; r4=round_e4m3 r3; out r4", DType::f8e4m3fn),
            "2 of r1 * 0x1.9p+5f, 0");
  EXPECT_EQ(left("in=1; r1=gelu_erf r0; r2=round_e4m3 r1; out r2", DType::f8e4m3fn), "1 of r1, 0");
  EXPECT_NE(left("in=1; r1=gelu_erf r0; r2=clip r1 0 1; r3=constant 0.02; r4=div r2 r3; r5=round_e4m3 r4; out r5",
                 DType::f8e4m3fn)
                .find("quotient_within"),
            std::string::npos);
  for (const std::string_view other : {"in=1; r1=round_e5m2 r0; out r1", "in=1; r1=round_e4m3 r0; r2=relu r1; out r2"})
    EXPECT_EQ(left(other, DType::f8e4m3fn), "") << other;
}

// Of 8-bit floats, unless scales are so small that what their formula leaves out shows.
TEST(Source, GelusOf8BitFloatsAreAsExactAsTheirScalesAllow) {
  const auto exactness_of = [](std::string_view scale, std::string_view type, DType dtype) {
    const auto text = "in=1; r1=gelu_erf r0; r2=constant {}; r3=div r1 r2; r4=round_{} r3; out r4";
    const std::optional<Levels> levels = levels_of(*parse_program(fmt::format(fmt::runtime(text), scale, type)), dtype);
    return levels ? levels->gelu : std::nullopt;
  };
  EXPECT_EQ(exactness_of("0.02", "e4m3", DType::f8e4m3fn), Exactness::float8);
  EXPECT_EQ(exactness_of("0.001953125", "e4m3", DType::f8e4m3fn), Exactness::float8);
  EXPECT_EQ(exactness_of("0.0019", "e4m3", DType::f8e4m3fn), Exactness::bits16);
  EXPECT_EQ(exactness_of("0.25", "e5m2", DType::f8e5m2), Exactness::float8);
  EXPECT_EQ(exactness_of("0.2", "e5m2", DType::f8e5m2), Exactness::bits16);
  EXPECT_EQ(levels_of(*parse_program("in=1; r1=relu r0; r2=round_e4m3 r1; out r2"), DType::f8e4m3fn)->gelu,
            std::nullopt);
}

TEST(Source, BroadcastAlignsAtTheLastDimension) {
  const Operand out = operand(DType::f32, {2, 3, 4});
  const Operand row = broadcast(operand(DType::f32, {3, 1}), out);
  EXPECT_EQ(row.dims, out.dims);
  EXPECT_EQ(row.opt_dims, out.opt_dims);
  EXPECT_EQ(row.opt_strides, (Dims{0, 1, 0}));
  EXPECT_EQ(*as_constant(row.strides), (Dims{0, 1, 0}));
}

TEST(Source, IndexSpacesReadBroadcastDimensionsAsBroadcastDoes) {
  const Expr n = Expr::symbol(0), m = Expr::symbol(1), k = Expr::symbol(2);
  const std::vector<int64_t> symbols = {1, 6, 1};
  const Operand whole = symbolic_operand(DType::f32, {4, n, m}, symbols);
  Operand kept = whole;  // without the last dimension, which is reduced
  kept.dims.pop_back(), kept.opt_dims.pop_back(), kept.strides.pop_back(), kept.opt_strides.pop_back();
  for (const Shape& dims : {Shape{1}, Shape{n}, Shape{k}, Shape{k, 1}, Shape{1, n}, Shape{4, k}}) {
    const Operand given = symbolic_operand(DType::f32, dims, symbols), expected = broadcast(given, kept);
    IndexSpace space(whole);
    space.reduce(2);
    const Operand read = space.kept_view(space.add_kept(given));
    EXPECT_EQ(read.strides, expected.strides) << to_string(dims);
    EXPECT_EQ(read.opt_strides, expected.opt_strides) << to_string(dims);
    Shape with_last = dims;
    with_last.emplace_back(1);
    const Operand view = space.kept_view(space.add(symbolic_operand(DType::f32, with_last, symbols)));
    EXPECT_EQ(view.strides, expected.strides) << to_string(dims);
    EXPECT_EQ(view.opt_strides, expected.opt_strides) << to_string(dims);
  }
  EXPECT_EQ(broadcast(symbolic_operand(DType::f32, {k, 1}, symbols), kept).strides, (Shape{min(k - 1, 1), 0}));
}

TEST(Source, NumbersAreLiteralsOrSharedArguments) {
  Source source("lib/tensor.cuh");
  const Expr n = Expr::symbol(0);
  EXPECT_EQ(source.number(7), "7L");
  EXPECT_EQ(source.number(INT64_MIN), "(-9223372036854775807L - 1)");
  EXPECT_EQ(source.number(n * 2), "n0");
  EXPECT_EQ(source.number(n), "n1");
  EXPECT_EQ(source.number(n + n), "n0");
  const SourceLaunch launch = source.finish("", {1, 1, 1}, 32, 0);
  ASSERT_EQ(launch.launch.args.size(), 2u);
  EXPECT_EQ(launch.launch.args[0].value, n * 2);
  EXPECT_NE(launch.source.find("lathe_kernel(long n0, long n1)"), std::string::npos) << launch.source;
}

TEST(Source, EqualProblemsGiveEqualText) {
  const auto text = [](float slope) {
    const Problem problem = pointwise_problem(fmt::format("in=1; r1=leaky_relu r0 {}; out r1", slope),
                                              {operand(DType::f16, {4, 8})}, {operand(DType::f16, {4, 8})});
    Source source("pointwise/pointwise.cuh");
    source.fusion(problem, 0);
    return source.finish("", {1, 1, 1}, 32, 0).source;
  };
  EXPECT_EQ(text(0.1f), text(0.1f));
  EXPECT_NE(text(0.1f), text(0.2f));
}

TEST(Source, ArgumentsComeInTheOrderOfParameters) {
  Source source("lib/tensor.cuh");
  source.input(3, operand(DType::f32, {4}), "A");
  source.workspace("scratch", Expr::symbol(1), "float");
  source.output(0, operand(DType::f32, {4}), "C");
  const Launch launch = source.finish("", {Expr::symbol(0), 1, 1}, 64, 128).launch;
  ASSERT_EQ(launch.args.size(), 3u);
  EXPECT_EQ(launch.args[0].kind, LaunchArg::input);
  EXPECT_EQ(launch.args[0].index, 3u);
  EXPECT_EQ(launch.args[1].kind, LaunchArg::workspace);
  EXPECT_EQ(launch.args[1].value, Expr::symbol(1));
  EXPECT_EQ(launch.args[2].kind, LaunchArg::output);
  EXPECT_EQ(launch.block, 64u);
  EXPECT_EQ(launch.shared_bytes, 128u);
  EXPECT_TRUE(launch.overlaps);
}

TEST(Collapse, MergesWhatAllTensorsStepOverAtOnce) {
  const Dims dims = {2, 3, 4, 5};
  EXPECT_EQ(collapse({operand(DType::f32, dims), operand(DType::f32, dims)})[1].opt_dims, (Dims{120}));
  // A channel's value: what comes after the channel is one dimension, what comes before another.
  const std::vector<Operand> tensors =
      collapse({operand(DType::f32, dims), strided_operand(DType::f32, dims, {0, 1, 0, 0})});
  EXPECT_EQ(tensors[0].opt_dims, (Dims{2, 3, 20}));
  EXPECT_EQ(tensors[1].opt_strides, (Dims{0, 1, 0}));
}

TEST(Collapse, OrdersByTheFirstTensor) {
  const Dims dims = {2, 3, 4, 5};
  const std::vector<Operand> tensors =
      collapse({operand(DType::f32, dims, Layout::channels_last), operand(DType::f32, dims)});
  EXPECT_EQ(tensors[0].opt_dims, (Dims{2, 20, 3}));
  EXPECT_EQ(tensors[0].opt_strides, (Dims{60, 3, 1}));
  EXPECT_EQ(tensors[1].opt_strides, (Dims{60, 1, 20}));
}

TEST(Collapse, ScalarsHaveOneDimension) {
  EXPECT_EQ(collapse({operand(DType::f32, {})})[0].opt_dims, (Dims{1}));
  EXPECT_EQ(collapse({operand(DType::f32, {1, 1})})[0].opt_dims, (Dims{1}));
}

TEST(Collapse, SymbolicDimsMergeWhereStridesProveIt) {
  const std::vector<int64_t> symbols = {3};
  const Shape dims = {Expr::symbol(0), 4, 5};
  const Operand dense = symbolic_operand(DType::f32, dims, symbols);
  EXPECT_EQ(collapse({dense})[0].dims, (Shape{Expr::symbol(0) * 20}));
  EXPECT_FALSE(fits_32_bits({dense}));
  EXPECT_TRUE(fits_32_bits({operand(DType::f32, {1000, 1000})}));
  EXPECT_FALSE(fits_32_bits({operand(DType::f32, {100000, 100000})}));
}

TEST(DeviceHeaders, EachCompilesAlone) {
  ASSERT_FALSE(headers().empty());
  for (const Header& header : headers()) {
    if (!std::string_view(header.name).ends_with(".cuh")) continue;  // formulas are parts of headers
    const Result<std::vector<std::byte>> object =
        compile_for_emulator(fmt::format("#include \"{}\"\nLATHE_PARAMETERS(0)\n", header.name));
    EXPECT_TRUE(object) << header.name << "\n" << object.error().message;
  }
}

}  // namespace
}  // namespace lathe::cuda
