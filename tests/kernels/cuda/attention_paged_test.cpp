// SPDX-License-Identifier: Apache-2.0
// Attention whose keys and values lie in blocks of a pool, on the emulator. Random tables have numbers from -8 to 8, of
// pools with fewer blocks: some count from the end, and some name no block.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/attention_problem.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {

const Tactic& attention_tactic();

namespace {

struct Sizes {
  int64_t queries = 1, block = 16, size = 64, blocks = 3, pool = 6;
};
constexpr int64_t kBatch = 3, kHeads = 4, kShared = 2;

// In memory [blocks, keys, heads, size].
Operand paged(DType dtype, const Sizes& s, DType of_table = DType::i64) {
  const int64_t row = kShared * s.size;
  Operand keys = strided_operand(dtype, {kBatch, kShared, s.blocks * s.block, s.size}, {0, s.size, row, 1});
  keys.pages = {OperandDim{s.pool, s.block * row, s.pool, s.block * row}, s.block, s.block};
  keys.operands = {operand(of_table, {kBatch, s.blocks})};
  return keys;
}

Problem paged_problem(const AttentionAttrs& attrs, DType dtype, const Sizes& s, const std::vector<Operand>& mask = {}) {
  const Operand q = operand(dtype, {kBatch, kHeads, s.queries, s.size});
  std::vector<Operand> inputs = {q, paged(dtype, s), paged(dtype, s, DType::i32)};
  inputs.insert(inputs.end(), mask.begin(), mask.end());
  Problem problem = op_problem(attrs, std::move(inputs), {q});
  problem.tf32 = dtype == DType::f32;
  return problem;
}

void check(const Problem& problem) {
  const DType dtype = problem.inputs[0].dtype;
  CheckOptions options;
  options.tolerance = dtype == DType::bf16 ? 3e-2 : dtype == DType::f32 && !problem.tf32 ? 1e-4 : 4e-3;
  const Result<> checked = check_tactic(test_backend(), attention_tactic(), problem, options);
  EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
}

TEST(PagedAttentions, TypesAndSizesOfBlocks) {
  const AttentionAttrs attrs = attention_attributes(0.125);
  for (const auto& [dtype, block] : {std::pair(DType::f16, 16), {DType::f16, 5}, {DType::bf16, 16}, {DType::f32, 32}})
    check(paged_problem(attrs, dtype, {1, block}));
}

TEST(PagedAttentions, SeveralQueriesOfCausalOnesAndMasks) {
  const AttentionAttrs attrs = attention_attributes(0.125, true, 3);
  for (const int64_t queries : {4, 40}) {
    check(paged_problem(attrs, DType::f16, {queries, 16, 32}));
    check(paged_problem(attrs, DType::f16, {queries, 16, 40}, {operand(DType::f16, {kBatch, 1, queries, 48})}));
  }
}

TEST(PagedAttentions, WithoutTensorCores) {
  const AttentionAttrs attrs = attention_attributes(0.125);
  for (const int64_t size : {20, 13}) {
    Problem problem = paged_problem(attrs, DType::f32, {3, 16, size});
    problem.tf32 = false;
    check(problem);
  }
}

// Levels that a scale of the tensor, or of each channel of a head, turns into floats as they are read.
TEST(PagedAttentions, LevelsInBlocks) {
  const AttentionAttrs attrs = attention_attributes(0.125);
  for (const DType levels : {DType::i8, DType::u8, DType::f8e4m3fn, DType::f8e5m2})
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
      for (const bool of_channels : {false, true}) {
        const Sizes s{2, 16, of_channels ? 64 : 40};
        Problem problem = paged_problem(attrs, dtype, s);
        for (const size_t i : {1, 2}) {
          Operand& input = problem.inputs[i];
          input.dtype = levels;
          input.program = *parse_program("in=2; r2=mul r0 r1; r3=affine r2 0.0625 -0; out r3");
          const Dims strides = of_channels ? Dims{0, s.size, 0, 1} : Dims{0, 0, 0, 0};
          input.operands.push_back(strided_operand(DType::f32, {kBatch, kShared, s.blocks * s.block, s.size}, strides));
        }
        check(problem);
      }
}

// Of many queries, or rows that are not aligned, the blocks are gathered first.
TEST(PagedAttentions, LevelsThatAreRefused) {
  const AttentionAttrs attrs = attention_attributes(0.125);
  for (const Sizes& s : {Sizes{80, 16, 64}, Sizes{1, 16, 20}}) {
    Problem problem = paged_problem(attrs, DType::f16, s);
    problem.inputs[1].dtype = DType::i8;
    problem.inputs[1].program = *parse_program("in=1; r1=affine r0 0.5 -0; out r1");
    EXPECT_EQ(refusal_of(attention_tactic(), problem), "levels, for many queries or rows that are not aligned");
  }
}

// Keys alone lie in blocks; the sizes are known later.
TEST(PagedAttentions, SizesKnownLater) {
  const std::vector<int64_t> symbols = {kBatch, 3, 6};
  const Sizes s;
  Operand keys = paged(DType::f16, s);
  keys.dims[0] = Expr::symbol(0), keys.dims[2] = Expr::symbol(1) * s.block;
  keys.pages->blocks.extent = Expr::symbol(2);
  keys.operands = {symbolic_operand(DType::i64, {Expr::symbol(0), Expr::symbol(1)}, symbols)};
  const Operand q = symbolic_operand(DType::f16, {Expr::symbol(0), kHeads, 1, s.size}, symbols);
  const Operand values =
      symbolic_operand(DType::f16, {Expr::symbol(0), kShared, Expr::symbol(1) * s.block, s.size}, symbols);
  const AttentionAttrs attrs = attention_attributes(0.125);
  const Problem problem = op_problem(attrs, {q, keys, values}, {q});
  CheckOptions options;
  options.tolerance = 4e-3;
  options.symbols = symbols;
  const Result<> checked = check_tactic(test_backend(), attention_tactic(), problem, options);
  EXPECT_TRUE(checked) << checked.error().message;
}

}  // namespace
}  // namespace lathe::cuda
