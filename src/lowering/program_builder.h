// SPDX-License-Identifier: Apache-2.0
// Translates pointwise IR nodes into a fusion program.
#pragma once

#include <span>
#include <unordered_map>

#include "lowering/region.h"

namespace lathe {

// The first storage type (base/dtypes.def) of the node's operands and result: no kernel reads or writes such elements.
std::optional<DType> storage_type_of(const ir::Node& node);

// What no region computes beside other nodes: storage types, and scales by blocks that passes could not broadcast.
bool is_plain_only(const ir::Node& node);

// Whether a pointwise node can be part of a fusion program: its types are f32 or, when allowed, others that f32 holds:
// 16-bit floats, and integers where they are quantised, dequantised or cast to floats. Instructions compute in f32, and
// what lies between two of them stays so; a cast alone rounds, as the network says.
bool is_programmable(const ir::Node& node, bool narrow_types);

// Floats that are such types.
bool is_program_float(DType dtype, bool narrow_types);

// The instruction that rounds as the cast does whose result the value is, moved or not; nullopt where none does, or
// nothing is lost. What a kernel writes is rounded as it is stored, so only what goes on to compute with the value
// needs it.
std::optional<Opcode> rounding_of(const ir::Value& value);
// Rounds the first result of the program so, which is the value, for what is to follow; false = there is no room.
bool round_result(Program& program, const ir::Value& value);

// A program whose nodes may move elements: notes how each operand is read. Where a call fails, the program may hold a
// part of what it was to add: the caller keeps a copy of the one before.
class ProgramBuilder {
 public:
  // Register 0 is the accumulator, standing for this value; without it the program starts from its operands.
  explicit ProgramBuilder(const ir::Value* accumulator);
  // Registers 0 and 1 are the halves of a root's result (Region::pairs).
  ProgramBuilder(const ir::Value* first, const ir::Value* second);

  // Adds the instructions of a node whose result, to which its operands broadcast, is computed at that index. False
  // when the program would exceed the limits of device/program.h.
  bool add(const ir::Node& node, const Shape& index);
  // The same, where an input may be read elsewhere than the result is: how each one is read, as if none of them were
  // broadcast.
  bool add(const ir::Node& node, std::span<const Read> reads);
  // The result of a node that computes nothing is one of its inputs: one that was added,
  void add_moved(const ir::Node& node, size_t input = 0) { alias(node.output(), node.input(input)); }
  // or memory that is read so, whether or not that value is an operand already. False when that is one too many.
  bool add_moved(const ir::Node& node, size_t input, Read read);
  // Rounds the value that the nodes make as its cast says, for a kernel that reads it from registers.
  void round(ir::Value* value) { source(value); }
  // The bias of a convolution, whose result has that index.
  void add_bias(ir::Value* bias, const Shape& index);

  // Over the space that the indices are of; nullopt where memory cannot be read by some map, or axes are too many.
  std::optional<Expression> finish(const ir::Value* result, Space space) const;

 private:
  struct Pending {
    Opcode op;
    std::vector<int> sources;  // operand index when < 0 (as ~index), else instruction index
    std::array<float, 2> immediates{};
  };
  bool room(size_t operands, size_t code) const;
  bool add_code(const ir::Node& node);
  void add_quantize(const ir::Node& node);
  void add_dequantize(const ir::Node& node);
  void binary(Opcode op, int a, ir::Value* b);  // b may be a number
  int operand(ir::Value* value);
  int source(ir::Value* value);
  void alias(const ir::Value* value, const ir::Value* of);
  void forget(const ir::Value* value);
  int push(Opcode op, std::vector<int> sources, float x = 0, float y = 0);
  int last() const { return static_cast<int>(code_.size()) - 1; }
  Program program_of(const ir::Value* result) const;

  static constexpr int kAccumulator = -1;  // ~0
  size_t accumulators_;
  std::vector<ir::Value*> operands_;
  std::vector<Read> reads_;  // of the operands
  std::vector<Pending> code_;
  std::unordered_map<const ir::Value*, int> sources_;
  std::unordered_map<const ir::Value*, Opcode> unrounded_;  // of those, what has yet to be rounded where it is read
  std::unordered_map<const ir::Value*, Read> last_reads_;   // of values
};

}  // namespace lathe
