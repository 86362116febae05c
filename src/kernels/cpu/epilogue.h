// SPDX-License-Identifier: Apache-2.0
// The fusion program as the last stage of a tile kernel (GEMM, convolution, depthwise): it runs on a tile of
// rows x columns (pixels x channels) while the accumulators are in registers or L1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/cpu/kernel.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/program_block.h"

namespace lathe::cpu {

inline constexpr int kMaxTileRows = 32;
inline constexpr int kMaxVectorTileRows = 14;  // of tiles in vector registers
inline constexpr int kMaxTileColumns = 64;
inline constexpr int kMaxEpilogueOperands = kMaxProgramInputs - 1;

// A program that is a chain, each step applied to the result of the one before and to at most one operand.
struct EpilogueStep {
  StepOp op;
  int operand = -1;  // of the kernel's extra operands; -1 = none
  float x = 0, y = 0, z = 0, w = 0;
};

inline constexpr size_t kMaxProgramScratch = 192 << 10;

// What is known of the program before shapes are.
struct Epilogue {
  Program program;
  bool is_chain = false;  // every step of `chain` is one that finish_tile() runs itself
  std::vector<EpilogueStep> chain;
  BlockProgram block;  // what runs when it is no chain
  int operands() const { return program.num_inputs > 0 ? program.num_inputs - 1 : 0; }
};
// nullptr = identity. Refuses a program with more than one output or without an accumulator.
Result<Epilogue> compile_epilogue(const Program* program);

// Every operand has the output's rank, f32, and each dimension equal to the output's or 1.
Result<> check_epilogue(const Epilogue& epilogue, std::span<const TensorArg> operands, const TensorArg& output);

// Strides of an operand as broadcast to the output: 0 where its dimension is 1.
inline int64_t broadcast_stride(const TensorArg& operand, int dim) {
  return operand.dims[dim] == 1 ? 0 : operand.strides[dim];
}

struct EpilogueOperand {
  const float* data = nullptr;
  size_t size = sizeof(float);  // of an element
  int64_t column_stride = 0;
  bool varies_by_row = false;
};

// The epilogue with its operands, for one launch.
struct BoundEpilogue {
  const Epilogue* epilogue = nullptr;
  int count = 0;
  EpilogueOperand operands[kMaxEpilogueOperands];
  // The usual form, done in one pass: clip(act(acc + bias + residual) + late_residual, low, high). Valid when `fused`.
  bool fused = false;
  const float* bias = nullptr;
  int residual = -1;  // operands; -1 = none
  bool has_act = false;
  EpilogueStep act;
  int late_residual = -1;
  float low = 0, high = 0;
  // The same without act and late_residual: tiles do it in registers.
  bool linear = false;
};
// `column_dim` is the output dimension that runs along a tile's columns.
BoundEpilogue bind_epilogue(const Epilogue& epilogue, std::span<const TensorArg> operands, const TensorArg& output,
                            int column_dim);

// Where a tile's rows lie. operand[i][r] is only set for operands that vary by row; column 0 of the whole output.
struct TileRows {
  float* out[kMaxTileRows];
  const float* operand[kMaxEpilogueOperands][kMaxTileRows];
};

// Runs the epilogue on sums[rows][row_stride], columns [column, column + columns) of the output, and stores the result.
// `sums` is scratch afterwards.
using FinishTile = void(const BoundEpilogue& bound, const TileRows& where, float* sums, int64_t row_stride, int rows,
                        int64_t column, int columns);
LATHE_ISA_DECLARE(FinishTile finish_tile)

}  // namespace lathe::cpu
