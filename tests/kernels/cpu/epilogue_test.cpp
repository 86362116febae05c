// SPDX-License-Identifier: Apache-2.0
// Epilogues that round to levels run as chains, and give to the bit what the program gives block by block.
#include "kernels/cpu/epilogue.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "fixtures/guarded_memory.h"
#include "kernels/cpu/isa_levels.h"

namespace lathe::cpu {
namespace {

const auto kFinish = LATHE_ISA_LEVELS(finish_tile);
const auto kBlocks = LATHE_ISA_LEVELS(run_program_block);

constexpr int kRows = 5, kStride = 48;

TensorArg matrix(float* data, int64_t rows, int64_t columns) {
  TensorArg arg;
  arg.data = data;
  arg.dtype = DType::f32;
  arg.rank = 2;
  arg.dims[0] = rows, arg.dims[1] = columns;
  arg.strides[0] = columns, arg.strides[1] = 1;
  return arg;
}

Program parsed(const std::string& text) {
  Result<Program> program = parse_program(text);
  EXPECT_TRUE(program) << text << (program ? "" : program.error().message);
  return program ? *program : Program{};
}

// Finishes a tile with a bias and a residual, and compares with the program.
void expect_program(const std::string& text, int columns, bool is_chain, std::mt19937& random) {
  const Program program = parsed(text);
  const Result<Epilogue> epilogue = compile_epilogue(&program);
  ASSERT_TRUE(epilogue);
  ASSERT_EQ(epilogue->is_chain, is_chain) << text;
  std::uniform_real_distribution<float> uniform(-40, 40);
  const auto size = static_cast<size_t>(kRows * columns);
  GuardedVector<float> bias(static_cast<size_t>(columns)), residual(size), out(size), expected(size);
  std::vector<float> sums(kRows * kStride + 64);
  for (float& value : bias) value = uniform(random);
  for (float& value : residual) value = uniform(random);
  for (float& value : sums) value = uniform(random);
  const BlockProgram block(program);
  std::vector<float> scratch(block.scratch_bytes() / sizeof(float) + 16);
  auto* aligned = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t{63});
  const TensorArg operands[] = {matrix(bias.data(), 1, columns), matrix(residual.data(), kRows, columns)};
  const TensorArg output = matrix(out.data(), kRows, columns);
  ASSERT_TRUE(check_epilogue(*epilogue, operands, output));
  const BoundEpilogue bound = bind_epilogue(*epilogue, operands, output, 1);
  for (size_t level = 0; level < kFinish.size(); ++level) {
    const BlockInput inputs[] = {{sums.data(), kStride, 1}, {bias.data(), 0, 1}, {residual.data(), columns, 1}};
    const BlockOutput block_output{expected.data(), columns};
    kBlocks[level].function(block, kRows, columns, inputs, &block_output, aligned);
    alignas(64) float copy[kRows * kStride + 64];
    std::copy(sums.begin(), sums.end(), copy);
    TileRows where{};
    for (int r = 0; r < kRows; ++r) {
      where.out[r] = out.data() + r * columns;
      where.operand[1][r] = residual.data() + r * columns;
    }
    kFinish[level].function(bound, where, copy, kStride, kRows, 0, columns);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(out[i], expected[i]) << text << ", element " << i;
  }
}

TEST(Epilogue, LevelsAreChains) {
  std::mt19937 random(3);
  const std::string levels = "r4=constant 0.3; r5=div r3 r4; r6=round r5; r7=clip r6 -90 37; r8=affine r7 0.3 -0; ";
  for (const int columns : {48, 33, 7, 1}) {
    expect_program("in=3; r3=add r0 r1; " + levels + "r9=add r8 r2; out r9", columns, true, random);
    expect_program("in=3; r3=add r0 r1; " + levels + "r9=add r2 r8; r10=relu r9; out r10", columns, true, random);
    expect_program(
        "in=3; r3=add r0 r1; " + levels +
            "r9=add r2 r8; r10=affine r9 4 -0; r11=round r10; r12=clip r11 -128 127; r13=affine r12 0.25 -0; "
            "out r13",
        columns, true, random);
    expect_program(
        "in=3; r3=constant 0.7; r4=div r0 r3; r5=round r4; r6=clip r5 0 255; r7=affine r6 0.7 -0; "
        "r8=add r7 r1; r9=div r8 r3; r10=round r9; r11=clip r10 -3 200; r12=affine r11 0.7 -0; "
        "r13=add r12 r2; out r13",
        columns, true, random);
  }
}

// Every activation runs on tiles, between a bias and a residual. Sums may be fused there, which the program's are not.
TEST(Epilogue, EveryActivationRunsOnTiles) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  constexpr int kColumns = 33;
  for (int number = 0; number < 256; ++number) {
    const OpcodeInfo* info = opcode_info(number);
    if (!info || !is_activation(info->op)) continue;
    const Program program{3,
                          {{Opcode::add, {0, 1, 0}, {}},
                           {info->op, {3, 0, 0}, {info->immediates > 0 ? 0.3f : 0, info->immediates > 1 ? 0.7f : 0}},
                           {Opcode::add, {4, 2, 0}, {}}},
                          {5}};
    const Result<Epilogue> epilogue = compile_epilogue(&program);
    ASSERT_TRUE(epilogue);
    EXPECT_TRUE(epilogue->is_chain) << info->name;
    GuardedVector<float> bias(kColumns), residual(kRows * kColumns), out(kRows * kColumns);
    alignas(64) float sums[kRows * kStride], copy[kRows * kStride];
    for (float& value : bias) value = normal(random);
    for (float& value : residual) value = normal(random);
    for (float& value : sums) value = normal(random);
    const TensorArg operands[] = {matrix(bias.data(), 1, kColumns), matrix(residual.data(), kRows, kColumns)};
    const BoundEpilogue bound = bind_epilogue(*epilogue, operands, matrix(out.data(), kRows, kColumns), 1);
    for (const auto& [level, finish] : kFinish) {
      std::copy(std::begin(sums), std::end(sums), copy);
      TileRows where{};
      for (int r = 0; r < kRows; ++r) {
        where.out[r] = out.data() + r * kColumns;
        where.operand[1][r] = residual.data() + r * kColumns;
      }
      finish(bound, where, copy, kStride, kRows, 0, kColumns);
      for (int r = 0; r < kRows; ++r)
        for (int c = 0; c < kColumns; ++c) {
          const auto at = static_cast<size_t>(r * kColumns + c);
          const float in[] = {sums[r * kStride + c], bias[static_cast<size_t>(c)], residual[at]};
          float expected = 0;
          evaluate(program, in, {&expected, 1});
          ASSERT_NEAR(out[at], expected, 2e-6 * (1 + std::abs(in[0]) + std::abs(in[1]) + std::abs(in[2])))
              << to_text(program) << ", " << level;
        }
    }
  }
}

TEST(Epilogue, WhatLooksLikeLevelsIsNone) {
  std::mt19937 random(4);
  for (const std::string text :
       {"in=3; r3=add r0 r1; r4=div r3 r2; r5=round r4; r6=clip r5 -9 9; r7=affine r6 0.3 -0; out r7",  // by an operand
        "in=3; r3=constant 0.3; r4=div r0 r3; r5=round r4; r6=clip r5 -9 9; r7=affine r6 0.3 1; r8=add r7 r2; out r8",
        "in=3; r3=affine r0 3 -0; r4=round r3; r5=clip r4 -9 9; r6=affine r5 0.3 -0; r7=add r6 r2; out r7",
        "in=3; r3=constant 0.3; r4=div r0 r3; r5=round r4; r6=clip r5 -9 9; r7=affine r6 0.3 -0; r8=add r7 r5; out r8"})
    expect_program(text, 33, false, random);
}

}  // namespace
}  // namespace lathe::cpu
