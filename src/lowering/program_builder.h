// SPDX-License-Identifier: Apache-2.0
// Translates pointwise IR nodes into a fusion program.
#pragma once

#include <unordered_map>

#include "lowering/region.h"

namespace lathe {

// The first storage type (base/dtypes.def) of the node's operands and result: no kernel reads or writes such elements.
std::optional<DType> storage_type_of(const ir::Node& node);

// What no region computes beside other nodes: storage types, and scales by blocks that passes could not broadcast.
bool is_plain_only(const ir::Node& node);

// Whether a pointwise node can be part of a fusion program: its types are f32 or, when allowed, others that f32 holds:
// 16-bit floats, and integers where they are quantised, dequantised or cast to floats. Instructions compute in f32; a
// cast between such types is none.
bool is_programmable(const ir::Node& node, bool narrow_types);

// Floats that are such types.
bool is_program_float(DType dtype, bool narrow_types);

class ProgramBuilder {
 public:
  // Register 0 is the accumulator, standing for this value; without it the program starts from its operands.
  explicit ProgramBuilder(const ir::Value* accumulator = nullptr);

  // Adds the node's instructions. False, changing nothing, when the program would exceed the limits of
  // device/program.h.
  bool add(const ir::Node& node);
  // The result of a node that computes nothing is one of its inputs: one that was added, or memory that is read anew,
  // whether or not that value is an operand already. False, changing nothing, when that is one too many.
  bool add_moved(const ir::Node& node, size_t input, bool is_added);
  // The next node that reads this value, which none that was added made, has it as an operand of its own.
  void forget(const ir::Value* value) { sources_.erase(value); }
  const std::vector<ir::Value*>& operands() const { return operands_; }
  // Adds `bias[channel]` to the accumulator.
  bool add_bias(ir::Value* bias);

  // The program, and the values that its inputs (after the accumulator) stand for.
  Program finish(const ir::Value* result, std::vector<ir::Value*>& operands) const;

 private:
  struct Pending {
    Opcode op;
    std::vector<int> sources;  // operand index when < 0 (as ~index), else instruction index
    std::array<float, 2> immediates{};
  };
  bool room(size_t operands, size_t code) const;
  void add_quantize(const ir::Node& node);
  void add_dequantize(const ir::Node& node);
  int binary(Opcode op, int a, ir::Value* b);  // b may be a number
  int operand(ir::Value* value);
  int source(ir::Value* value);
  std::optional<float> scalar(const ir::Value* value) const;
  void push(Opcode op, std::vector<int> sources, float x = 0, float y = 0);

  static constexpr int kAccumulator = -1;  // ~0
  bool has_accumulator_;
  std::vector<ir::Value*> operands_;
  std::vector<Pending> code_;
  std::unordered_map<const ir::Value*, int> sources_;
};

}  // namespace lathe
