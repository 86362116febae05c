// SPDX-License-Identifier: Apache-2.0
#include "device/program.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/dtype.h"

namespace lathe {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

float run(std::string_view text, std::vector<float> inputs) {
  const Result<Program> program = parse_program(text);
  EXPECT_TRUE(program) << (program ? "" : program.error().message);
  float output = -12345;
  if (program) evaluate(*program, inputs, {&output, 1});
  return output;
}

TEST(Program, TextRoundTrips) {
  const std::string text = "in=2; r2=add r0 r1; r3=clip r2 0 6; r4=affine r3 0.1 -inf; r5=fma r2 r3 r4; out r3 r5";
  const Result<Program> program = parse_program(text);
  ASSERT_TRUE(program);
  EXPECT_EQ(to_text(*program), text);
  EXPECT_EQ(program->code[1].immediates[1], 6.0f);
}

TEST(Program, EveryInstructionRoundTripsThroughText) {
  for (int number = 0; number < 256; ++number) {
    const OpcodeInfo* info = opcode_info(number);
    if (!info) continue;
    Program program{3, {{info->op, {}, {}}}, {3}};
    for (int i = 0; i < info->operands; ++i)
      program.code[0].operands[static_cast<size_t>(i)] = static_cast<uint16_t>(2 - i);
    for (int i = 0; i < info->immediates; ++i)
      program.code[0].immediates[static_cast<size_t>(i)] = 0.1f + static_cast<float>(i);
    const Result<Program> parsed = parse_program(to_text(program));
    ASSERT_TRUE(parsed) << to_text(program);
    EXPECT_EQ(*parsed, program) << to_text(program);
  }
}

// Of every exponent, in the middle between two numbers and beside it.
TEST(Program, RoundsAsTypesDo) {
  for (uint32_t high = 0; high < 0x10000; high += 7)
    for (const uint32_t low : {0u, 0x7fffu, 0x8000u, 0x8001u, 0xfffu, 0x1000u, 0x1001u, 0xf000u}) {
      const auto x = std::bit_cast<float>(high << 16 | low);
      const auto f16 = static_cast<float>(Half(x)), bf16 = static_cast<float>(BFloat16(x));
      const float rounded[] = {run("in=1; r1=round_f16 r0; out r1", {x}), run("in=1; r1=round_bf16 r0; out r1", {x})};
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(rounded[0]) && std::isnan(rounded[1]));
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint32_t>(rounded[0]), std::bit_cast<uint32_t>(f16)) << x;
      ASSERT_EQ(std::bit_cast<uint32_t>(rounded[1]), std::bit_cast<uint32_t>(bf16)) << x;
    }
}

// Numbers that are known: ties go to the even neighbour, and half an ulp beyond the largest is infinity.
TEST(Program, RoundsToKnownNumbers) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [x, f16] : std::vector<std::pair<float, float>>{{65519.99f, 65504.0f},
                                                                   {65520.0f, infinity},
                                                                   {-65520.0f, -infinity},
                                                                   {2049.0f, 2048.0f},
                                                                   {2051.0f, 2052.0f},
                                                                   {0x1p-25f, 0.0f},
                                                                   {0x1.8p-25f, 0x1p-24f},
                                                                   {0x1.8p-24f, 0x1p-23f},
                                                                   {1 + 0x1p-11f, 1.0f}})
    EXPECT_EQ(run("in=1; r1=round_f16 r0; out r1", {x}), f16) << x;
  for (const auto& [x, bf16] : std::vector<std::pair<float, float>>{{1 + 0x1p-8f, 1.0f},
                                                                    {1 + 0x1.8p-7f, 1 + 0x1p-6f},
                                                                    {257.0f, 256.0f},
                                                                    {259.0f, 260.0f},
                                                                    {0x1.ffp127f, infinity},
                                                                    {0x1.fefffep127f, 0x1.fep127f},
                                                                    {0x1p-149f, 0.0f},
                                                                    {0x1p-133f, 0x1p-133f}})
    EXPECT_EQ(run("in=1; r1=round_bf16 r0; out r1", {x}), bf16) << x;
}

// Plans hold the numbers.
TEST(Program, NumbersStay) {
  EXPECT_EQ(opcode_info(0), nullptr);
  EXPECT_EQ(opcode_info(46), nullptr);   // softplus without parameters, once
  EXPECT_EQ(opcode_info(100), nullptr);  // tan is not an instruction
  for (const auto& [number, name] : std::vector<std::pair<int, std::string_view>>{{1, "constant"},
                                                                                  {2, "add"},
                                                                                  {10, "affine"},
                                                                                  {13, "select"},
                                                                                  {38, "round_f16"},
                                                                                  {39, "round_bf16"},
                                                                                  {24, "exp"},
                                                                                  {40, "relu"},
                                                                                  {41, "clip"},
                                                                                  {49, "hard_swish"},
                                                                                  {50, "silu"},
                                                                                  {55, "prelu"},
                                                                                  {56, "softplus"},
                                                                                  {59, "swish"}}) {
    ASSERT_NE(opcode_info(number), nullptr) << name;
    EXPECT_EQ(opcode_info(number)->name, name);
  }
}

TEST(Program, ActivationsHaveOneOperand) {
  EXPECT_TRUE(is_activation(Opcode::relu));
  EXPECT_TRUE(is_activation(Opcode::swish));
  EXPECT_FALSE(is_activation(Opcode::add));
  EXPECT_FALSE(is_activation(Opcode::exp));
  for (int number = 0; number < 256; ++number) {
    const OpcodeInfo* info = opcode_info(number);
    if (info && is_activation(info->op)) {
      EXPECT_EQ(info->operands, 1) << info->name;
    }
  }
}

TEST(Program, SyntaxErrorsAreReported) {
  for (const char* text :
       {"", "in=", "in=1", "in=1;", "in=1; out", "in=1; out r1", "in=1; r1=nothing r0; out r1",
        "in=1; r2=relu r0; out r2", "in=1; r1=relu r1; out r1", "in=1; r1=clip r0 1; out r1", "in=1; r1=relu r0 out r1",
        "in=1; r1=relu r0; out r1 x", "in=17; out r0", "in=99999; out r0", "in=1; r1=add r0; out r1", "in=-1; out r0"})
    EXPECT_FALSE(parse_program(text)) << text;
}

TEST(Program, ValidateRefusesWhatAKernelCouldNotRun) {
  const Program good{1, {{Opcode::relu, {0, 0, 0}, {}}}, {1}};
  EXPECT_TRUE(validate(good));
  Program bad = good;
  bad.code[0].op = static_cast<Opcode>(200);
  EXPECT_FALSE(validate(bad));
  bad = good;
  bad.code[0].operands[0] = 1;  // itself
  EXPECT_FALSE(validate(bad));
  bad = good;
  bad.code[0].operands[2] = 1;  // unused
  EXPECT_FALSE(validate(bad));
  bad = good;
  bad.code[0].immediates[0] = 1;  // unused
  EXPECT_FALSE(validate(bad));
  bad = good;
  bad.outputs = {2};
  EXPECT_FALSE(validate(bad));
  bad.outputs.assign(9, 0);
  EXPECT_FALSE(validate(bad));
  bad = good;
  bad.code.assign(65, good.code[0]);
  EXPECT_FALSE(validate(bad));
}

TEST(Program, EvaluatesChains) {
  EXPECT_EQ(run("in=2; r2=add r0 r1; r3=clip r2 0 6; out r3", {2, 3}), 5);
  EXPECT_EQ(run("in=2; r2=add r0 r1; r3=clip r2 0 6; out r3", {5, 3}), 6);
  EXPECT_EQ(run("in=0; r0=constant 2.5; out r0", {}), 2.5f);
  EXPECT_EQ(run("in=3; r3=select r0 r1 r2; out r3", {0, 1, 2}), 2);
  EXPECT_EQ(run("in=1; r1=round r0; out r1", {2.5f}), 2);
  EXPECT_FLOAT_EQ(run("in=1; r1=gelu_erf r0; out r1", {1}), 0.8413447f);
  EXPECT_FLOAT_EQ(run("in=1; r1=silu r0; out r1", {1}), 0.7310586f);
  EXPECT_FLOAT_EQ(run("in=1; r1=swish r0 2; out r1", {1}), 0.8807971f);
  EXPECT_FLOAT_EQ(run("in=1; r1=celu r0 2; out r1", {-1}), 2 * std::expm1(-0.5f));
  EXPECT_FLOAT_EQ(run("in=1; r1=softplus r0 1 1; out r1", {-20}), 2.0611537e-9f);
}

TEST(Program, EdgeValuesFollowTheTable) {
  for (const char* name :
       {"relu r0", "clip r0 0 6", "sign r0", "leaky_relu r0 0.1", "elu r0 1", "selu r0 1 1", "celu r0 1",
        "hard_sigmoid r0 0.2 0.5", "hard_swish r0", "max r0 r1", "max r1 r0", "min r0 r1", "min r1 r0"})
    EXPECT_TRUE(std::isnan(run(std::string("in=2; r2=") + name + "; out r2", {kNaN, 1}))) << name;
  EXPECT_EQ(run("in=1; r1=thresholded_relu r0 1; out r1", {kNaN}), 0);
  EXPECT_EQ(run("in=1; r1=softplus r0 1 1; out r1", {kInf}), kInf);
  EXPECT_EQ(run("in=1; r1=softplus r0 1 1; out r1", {-kInf}), 0);
  EXPECT_EQ(run("in=2; r2=pow r0 r1; out r2", {-2, 3}), -8);
  EXPECT_TRUE(std::isnan(run("in=2; r2=pow r0 r1; out r2", {-2, 0.5f})));
}

}  // namespace
}  // namespace lathe
