// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/program_block.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace lathe::cpu {
namespace {

struct Node {
  StepOp op = StepOp::copy;
  int arity = 0;
  std::array<uint16_t, 3> operands{};  // registers
  std::array<float, 4> immediates{};
  int uses = 0;  // by live nodes and by outputs
  bool is_constant() const { return op == StepOp::constant; }
};

// The program as a list of registers (inputs included), made cheaper by rewriting single nodes and adjacent pairs.
class Rewriter {
 public:
  explicit Rewriter(const Program& program) : inputs_(program.num_inputs), nodes_(program.num_inputs) {
    nodes_.reserve(program.num_inputs + 4 * program.code.size());  // with constants that rules add
    for (const Instruction& instruction : program.code) {
      const OpcodeInfo* info = opcode_info(static_cast<int>(instruction.op));
      nodes_.push_back({static_cast<StepOp>(instruction.op),
                        info->operands,
                        instruction.operands,
                        {instruction.immediates[0], instruction.immediates[1]},
                        0});
    }
    for (const uint16_t output : program.outputs) use(output);
    for (size_t i = nodes_.size(); i-- > inputs_;) rewrite(i);
  }
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  // Counts are known for a node when the walk from the outputs reaches it: all its users come later.
  void rewrite(size_t i) {
    Node& node = nodes_[i];
    if (node.uses == 0) return;
    if (node.op == StepOp::pow) rewrite_pow(node);
    if (node.op == StepOp::div) rewrite_div(node);
    for (int k = 0; k < node.arity; ++k) use(node.operands[static_cast<size_t>(k)]);
    if (node.op == StepOp::mul) absorb_sigmoid(node);
    if (node.op == StepOp::add) absorb_mul(node);
    if (node.op == StepOp::relu) absorb_add(node);
    if (node.op == StepOp::clip && !absorb_rounding(i)) absorb_affine(node);
    if (node.op == StepOp::affine) absorb_levels(node);
  }

  void use(uint16_t reg) { ++nodes_[reg].uses; }
  bool only_user(uint16_t reg, StepOp op) const { return nodes_[reg].op == op && reg >= inputs_ && only_use(reg); }
  // Earlier nodes may still read `reg`, but only ones between it and its user: look at all of them.
  bool only_use(uint16_t reg) const { return readers(reg) == 1 && nodes_[reg].uses == 1; }
  const Node* constant(uint16_t reg) const {
    return reg >= inputs_ && nodes_[reg].is_constant() ? &nodes_[reg] : nullptr;
  }

  void rewrite_pow(Node& node) {
    const Node* exponent = constant(node.operands[1]);
    if (!exponent) return;
    const float e = exponent->immediates[0];
    const uint16_t a = node.operands[0];
    if (e == 1) node = {StepOp::copy, 1, {a}, {}, node.uses};
    if (e == 2) node = {StepOp::mul, 2, {a, a}, {}, node.uses};
    if (e == 3) node = {StepOp::cube, 1, {a}, {}, node.uses};
    if (e == 0.5f) node = {StepOp::pow_half, 1, {a}, {}, node.uses};
    if (e == -1) node = {StepOp::recip, 1, {a}, {}, node.uses};
  }

  // Division by a power of two is exact as a multiplication.
  void rewrite_div(Node& node) {
    const Node* divisor = constant(node.operands[1]);
    if (!divisor) return;
    int exponent = 0;
    const float c = divisor->immediates[0];
    if (std::abs(std::frexp(c, &exponent)) == 0.5f && std::abs(exponent) < 120)
      node = {StepOp::affine, 1, {node.operands[0]}, {1 / c, -0.0f}, node.uses};
  }

  // a * sigmoid(a) -> silu(a)
  void absorb_sigmoid(Node& node) {
    for (const int side : {0, 1}) {
      const uint16_t s = node.operands[static_cast<size_t>(side)], a = node.operands[static_cast<size_t>(1 - side)];
      if (!only_user(s, StepOp::sigmoid) || nodes_[s].operands[0] != a) continue;
      nodes_[s].uses = 0;
      node = {StepOp::silu, 1, {a}, {}, node.uses};
      return;
    }
  }

  // a * b + c -> fma(a, b, c)
  void absorb_mul(Node& node) {
    for (const int side : {0, 1}) {
      const uint16_t m = node.operands[static_cast<size_t>(side)], c = node.operands[static_cast<size_t>(1 - side)];
      if (m == c || !only_user(m, StepOp::mul)) continue;
      const auto [a, b, none] = nodes_[m].operands;
      node = {StepOp::fma, 3, {a, b, c}, {}, node.uses};
      absorb(m);
      return;
    }
  }

  // relu(a + b) -> add_relu(a, b)
  void absorb_add(Node& node) {
    const uint16_t s = node.operands[0];
    if (!only_user(s, StepOp::add)) return;
    node = {StepOp::add_relu, 2, nodes_[s].operands, {}, node.uses};
    absorb(s);
  }

  // clip(a * x + y, z, w) -> affine_clip
  void absorb_affine(Node& node) {
    const uint16_t s = node.operands[0];
    if (!only_user(s, StepOp::affine)) return;
    const auto [x, y, none, nil] = nodes_[s].immediates;
    node = {StepOp::affine_clip, 1, nodes_[s].operands, {x, y, node.immediates[0], node.immediates[1]}, node.uses};
    absorb(s);
  }

  // clip(round(a / x), z, w) * y -> levels: how values are quantised and dequantised again
  void absorb_levels(Node& node) {
    const float y = node.immediates[0], addend = node.immediates[1];
    const uint16_t clip = node.operands[0];
    if (addend != 0 || !only_user(clip, StepOp::clip)) return;
    const uint16_t round = nodes_[clip].operands[0];
    if (!only_reader(round, StepOp::round)) return;
    const uint16_t quotient = nodes_[round].operands[0];
    const std::optional<float> x = divisor_of(quotient);
    if (!x) return;
    const float z = nodes_[clip].immediates[0], w = nodes_[clip].immediates[1];
    const uint16_t a = nodes_[quotient].operands[0];
    node = {StepOp::levels, 1, {a}, {*x, y, z, w}, node.uses};
    for (const uint16_t gone : {clip, round, quotient}) nodes_[gone].uses = nodes_[gone].arity = 0;
    use(a);
  }

  // clip(round(a / b) + c, x, y) -> to_levels(a, b, c): how values are quantised. Numbers become constants.
  bool absorb_rounding(size_t i) {
    const Node node = nodes_[i];
    uint16_t reg = node.operands[0];
    std::vector<uint16_t> gone;
    const auto constant_of = [&](float x) {
      nodes_.push_back({StepOp::constant, 0, {}, {x}, 0});
      return static_cast<uint16_t>(nodes_.size() - 1);
    };
    std::optional<uint16_t> zero, divisor;
    if (only_user(reg, StepOp::affine) && nodes_[reg].immediates[0] == 1) {
      zero = constant_of(nodes_[reg].immediates[1]);
    } else if (only_user(reg, StepOp::add)) {
      zero = nodes_[reg].operands[1];
    }
    if (zero) gone.push_back(reg), reg = nodes_[reg].operands[0];
    if (!is_only_step(reg, StepOp::round, gone.empty())) return false;
    gone.push_back(reg);
    reg = nodes_[reg].operands[0];
    if (only_reader(reg, StepOp::div)) {
      divisor = nodes_[reg].operands[1];
    } else if (const std::optional<float> x = divisor_of(reg)) {
      divisor = constant_of(*x);
    }
    if (!divisor) return false;
    gone.push_back(reg);
    if (!zero) zero = constant_of(0);
    const uint16_t a = nodes_[reg].operands[0];
    for (const uint16_t one : gone) nodes_[one].uses = nodes_[one].arity = 0;
    nodes_[i] = {StepOp::to_levels, 3, {a, *divisor, *zero}, node.immediates, node.uses};
    for (const uint16_t operand : nodes_[i].operands) use(operand);
    return true;
  }
  // ... whose user the walk is at, or has not reached yet.
  bool is_only_step(uint16_t reg, StepOp op, bool is_reached) const {
    return is_reached ? only_user(reg, op) : only_reader(reg, op);
  }

  // c where the node is a / c and nothing else reads it: a division, or a multiplication that is exact.
  std::optional<float> divisor_of(uint16_t reg) const {
    if (only_reader(reg, StepOp::div)) {
      const Node* divisor = constant(nodes_[reg].operands[1]);
      return divisor ? std::optional(divisor->immediates[0]) : std::nullopt;
    }
    int exponent = 0;
    const float factor = nodes_[reg].immediates[0], addend = nodes_[reg].immediates[1];
    if (!only_reader(reg, StepOp::affine) || addend != 0 || std::abs(std::frexp(factor, &exponent)) != 0.5f ||
        std::abs(exponent) >= 120)
      return std::nullopt;
    return 1 / factor;
  }

  // The same as only_user() of a register whose user the walk has not reached yet.
  bool only_reader(uint16_t reg, StepOp op) const {
    return reg >= inputs_ && nodes_[reg].op == op && nodes_[reg].uses == 0 && readers(reg) == 1;
  }
  int readers(uint16_t reg) const {
    int count = 0;
    for (const Node& node : nodes_)
      for (int k = 0; k < node.arity; ++k) count += node.operands[static_cast<size_t>(k)] == reg;
    return count;
  }

  // The node that read `reg` now reads the operands of `reg` itself.
  void absorb(uint16_t reg) {
    Node& gone = nodes_[reg];
    for (int k = 0; k < gone.arity; ++k) use(gone.operands[static_cast<size_t>(k)]);
    gone.uses = 0;
    gone.arity = 0;
  }

  const size_t inputs_;
  std::vector<Node> nodes_;
};

// Slots by liveness: a slot is free again after the last step that reads it, and that step may write to it.
class Slots {
 public:
  uint16_t take() {
    if (free_.empty()) return count_++;
    const uint16_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give(uint16_t slot) { free_.push_back(slot); }
  uint16_t take_new() { return count_++; }
  int count() const { return count_; }

 private:
  uint16_t count_ = 0;
  std::vector<uint16_t> free_;
};

}  // namespace

BlockProgram::BlockProgram(const Program& program) : num_inputs_(program.num_inputs), identity_(program.is_identity()) {
  const Rewriter rewriter(program);
  const std::vector<Node>& nodes = rewriter.nodes();
  const size_t first = program.num_inputs;

  std::vector<uint16_t> place(nodes.size());  // operand index of each register
  for (size_t i = 0; i < first; ++i) place[i] = static_cast<uint16_t>(i);
  for (size_t i = first; i < nodes.size(); ++i)
    if (nodes[i].uses > 0 && nodes[i].is_constant()) {
      place[i] = static_cast<uint16_t>(first_slot());
      constants_.insert(constants_.end(), kMaxLanes, nodes[i].immediates[0]);
    }
  const auto is_slot = [&](size_t reg) { return reg >= first && !nodes[reg].is_constant(); };
  const auto base = static_cast<uint16_t>(first_slot());

  std::vector<int> readers(nodes.size());
  for (const Node& node : nodes)
    for (int k = 0; k < (node.uses > 0 ? node.arity : 0); ++k) ++readers[node.operands[static_cast<size_t>(k)]];
  std::vector<bool> is_output(nodes.size());
  for (const uint16_t output : program.outputs) is_output[output] = true;

  Slots slots;
  for (size_t i = first; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.uses == 0 || node.is_constant()) continue;
    BlockStep step{node.op, 0, {}, node.immediates};
    for (size_t k = 0; k < static_cast<size_t>(node.arity); ++k) {
      const uint16_t reg = node.operands[k];
      step.operands[k] = place[reg];
      if (reg < first) used_inputs_ |= 1u << reg;
      if (--readers[reg] == 0 && is_slot(reg) && !is_output[reg]) slots.give(static_cast<uint16_t>(place[reg] - base));
    }
    // An output has a slot of its own, which the interpreter may replace by the output itself.
    step.target = static_cast<uint16_t>(base + (is_output[i] ? slots.take_new() : slots.take()));
    place[i] = step.target;
    steps_.push_back(step);
  }
  for (const uint16_t output : program.outputs) {
    if (is_slot(output)) {
      outputs_.push_back(place[output]);
      continue;
    }
    if (output < first) used_inputs_ |= 1u << output;
    const auto target = static_cast<uint16_t>(base + slots.take_new());
    steps_.push_back({StepOp::copy, target, {place[output]}, {}});
    outputs_.push_back(target);
  }
  num_slots_ = slots.count();
  // Slots, then a staging block, a vector for a scalar and a vector for a tail for each input, and for each output.
  const size_t views = static_cast<size_t>(num_inputs_) + outputs_.size();
  scratch_bytes_ =
      sizeof(float) * (static_cast<size_t>(num_slots_) * kBlockFloats + views * (kBlockFloats + 2 * kMaxLanes));
}

}  // namespace lathe::cpu
