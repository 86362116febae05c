// SPDX-License-Identifier: Apache-2.0
// Runs a fusion program over a block of f32 elements: instruction by instruction over a few hundred elements at a time,
// with registers that stay in the L1 cache. Used as the epilogue of tiles and by the pointwise kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "device/program.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

inline constexpr int kBlockFloats = 512;  // elements of one pass over the code
inline constexpr int kMaxLanes = 16;      // of any ISA level

// Where the element at that offset lies, as kernels of floats address it that also move elements of other sizes.
inline float* element_at(void* data, int64_t offset, size_t size) {
  return reinterpret_cast<float*>(static_cast<std::byte*>(data) + offset * static_cast<int64_t>(size));
}
inline const float* element_at(const void* data, int64_t offset, size_t size) {
  return reinterpret_cast<const float*>(static_cast<const std::byte*>(data) + offset * static_cast<int64_t>(size));
}

// A rows x columns view of an input: element (r, c) is data[r * row_stride + c * column_stride]. {p, 0, 0} is a scalar,
// {p, 0, 1} a bias along the columns, {p, 1, 0} one value for each row. Contiguous columns (stride 1) are fast.
// Elements may be u8 or i8, which become floats when they are read; floats become the integers that they are when they
// are written.
struct BlockInput {
  const void* data;
  int64_t row_stride;
  int64_t column_stride;
  DType type = DType::f32;
};
struct BlockOutput {
  void* data;
  int64_t row_stride;
  int64_t column_stride = 1;
  DType type = DType::f32;
};

// What an interpreter step does: the opcodes of the fusion program, and those that only the translation makes.
enum class StepOp : uint8_t {
  copy = 0,
#define LATHE_INSTRUCTION(name, number, operands, parameters, formula) name = number,
#define LATHE_ROUNDING(...)
#include "base/scalars.def"
  add_relu = 200,  // max(a + b, 0)
  affine_clip,     // min(max(a * x + y, z), w)
  cube,            // a * a * a
  pow_half,        // a ** 0.5
  levels,          // min(max(round(a / x), z), w) * y
  to_levels,       // min(max(round(a / b) + c, x), y)
  count
};

struct BlockStep {
  StepOp op;
  // Indices into the table of operands: the program's inputs, then its constants, then the scratch slots.
  uint16_t target = 0;
  std::array<uint16_t, 3> operands{};
  std::array<float, 4> immediates{};
};

// A program, translated once, for blocks. Immutable; shared by threads.
class BlockProgram {
 public:
  BlockProgram() : BlockProgram(Program{1, {}, {0}}) {}  // the identity
  explicit BlockProgram(const Program& program);         // a validated one

  int num_inputs() const { return num_inputs_; }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  bool is_identity() const { return identity_; }
  // Scratch that each thread needs, 64-byte aligned.
  size_t scratch_bytes() const { return scratch_bytes_; }

  // For the interpreter.
  const std::vector<BlockStep>& steps() const { return steps_; }
  const std::vector<float>& constants() const { return constants_; }
  int num_slots() const { return num_slots_; }
  const std::vector<uint16_t>& outputs() const { return outputs_; }  // operand index of each output
  bool uses_input(int i) const { return used_inputs_ >> i & 1; }
  int first_slot() const { return num_inputs_ + static_cast<int>(constants_.size()) / kMaxLanes; }

 private:
  int num_inputs_ = 0;
  int num_slots_ = 0;
  uint32_t used_inputs_ = 0;
  bool identity_ = false;
  size_t scratch_bytes_ = 0;
  std::vector<BlockStep> steps_;
  std::vector<float> constants_;
  std::vector<uint16_t> outputs_;
};

// Evaluates the program for every element of a rows x columns block. An output may be the same memory as an input of
// the same strides (in place). inputs[i] and outputs[i] are the program's; unused inputs may be null.
LATHE_ISA_DECLARE(void run_program_block(const BlockProgram& program, int64_t rows, int64_t columns,
                                         const BlockInput* inputs, const BlockOutput* outputs, float* scratch))

}  // namespace lathe::cpu
