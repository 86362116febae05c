// SPDX-License-Identifier: Apache-2.0
#include "lowering/program_builder.h"

#include <algorithm>
#include <cmath>

#include "indexing/access.h"
#include "ops/moved_bits.h"
#include "ops/quantization.h"
#include "plan/limits.h"
#include "tuning/opcode_of.h"
#include "tuning/problem.h"

namespace lathe {
namespace {

std::optional<Opcode> opcode_of(const ir::Node& node) {
  switch (node.kind()) {
    case OpKind::unary:
      return opcode_of(node.attrs<UnaryAttrs>().op);
    case OpKind::activation:
      return opcode_of(node.attrs<ActivationAttrs>().op);
    case OpKind::elementwise:
      return opcode_of(node.attrs<ElementwiseAttrs>().op);
    case OpKind::prelu:
      return Opcode::prelu;
    default:
      return std::nullopt;
  }
}

// A constant of one element goes into the code.
std::optional<float> number(const ir::Value* value) {
  const Tensor* tensor = value->constant();
  if (!tensor || tensor->volume() != 1) return std::nullopt;
  return static_cast<float>(tensor->at_double(0));
}

// Of a cast whose operand is rounded as it is read: f32 does not hold every i32, and what it has instead may have
// another neighbour in bf16.
bool rounds_twice(const ir::Node& cast) {
  return cast.input(0)->dtype() == DType::i32 && cast.output()->dtype() == DType::bf16;
}

}  // namespace

std::optional<DType> storage_type_of(const ir::Node& node) {
  const bool saturates = node.is(OpKind::quantize) && node.attrs<QuantizeAttrs>().saturate;
  const bool has_kernels =
      node.has_trait(kFloat8) || node.is(OpKind::dequantize) || saturates || moves_bits(node.attributes());
  const auto is_stored = [&](DType type) { return is_storage_only(type) && !(has_kernels && is_factor_float8(type)); };
  for (const ir::Value* input : node.inputs())
    if (input && is_stored(input->dtype())) return input->dtype();
  if (node.num_outputs() > 0 && is_stored(node.output()->dtype())) return node.output()->dtype();
  return std::nullopt;
}

bool is_plain_only(const ir::Node& node) {
  return storage_type_of(node) || (node.is(OpKind::quantize) && !node.attrs<QuantizeAttrs>().blocks.empty()) ||
         (node.is(OpKind::dequantize) && !node.attrs<DequantizeAttrs>().blocks.empty());
}

bool is_program_float(DType dtype, bool narrow_types) {
  return dtype == DType::f32 || (narrow_types && (dtype == DType::f16 || dtype == DType::bf16));
}

bool is_programmable(const ir::Node& node, bool narrow_types) {
  const auto is_float = [&](const ir::Value* value) { return value && is_program_float(value->dtype(), narrow_types); };
  // Sums of i32 lose what floats do not hold of them; they are scaled to few digits anyway.
  const auto is_level = [](const ir::Value* value) {
    const DType type = value->dtype();
    return (is_integer(type) && (size_of(type) <= 2 || type == DType::i32)) || is_factor_float8(type);
  };
  const ir::Value* x = node.input(0);
  if (narrow_types) {
    const ir::Value *scale = node.input(1), *zero_point = node.input(2);
    // A zero point of sums is subtracted by kernels that know it, before the sums become floats.
    const bool small_zero = !zero_point || size_of(zero_point->dtype()) <= 2 ||
                            (zero_point->constant() && zero_point->dtype() == DType::i32);
    const bool is_read = x && (is_float(x) || is_level(x));
    if (node.is(OpKind::quantize)) return is_float(x) && is_float(scale);
    if (node.is(OpKind::dequantize)) return is_read && small_zero && is_float(scale) && is_float(node.output());
    if (node.is(OpKind::cast)) return is_read && is_float(node.output()) && !rounds_twice(node);
  }
  return opcode_of(node) && is_float(node.output()) &&
         std::all_of(node.inputs().begin(), node.inputs().end(), is_float);
}

std::optional<Opcode> rounding_of(const ir::Value& value) {
  const ir::Node* cast = value.producer();
  while (cast && permutes_elements(*cast) && cast->input(0)->dtype() == value.dtype())
    cast = cast->input(0)->producer();
  if (!cast || !cast->is(OpKind::cast)) return std::nullopt;
  const DType from = cast->input(0)->dtype(), to = value.dtype();
  // Both types hold all numbers of 8 bits.
  if ((to != DType::f16 && to != DType::bf16) || from == to || size_of(from) == 1) return std::nullopt;
  return to == DType::f16 ? Opcode::round_f16 : Opcode::round_bf16;
}

bool round_result(Program& program, const ir::Value& value) {
  const std::optional<Opcode> rounding = rounding_of(value);
  const size_t inputs = program.num_inputs, result = program.outputs[0];
  if (!rounding || (result >= inputs && program.code[result - inputs].op == *rounding)) return true;
  if (program.code.size() == kMaxProgramCode) return false;
  program.code.push_back({*rounding, {program.outputs[0]}, {}});
  program.outputs[0] = static_cast<uint16_t>(inputs + program.code.size() - 1);
  return true;
}

ProgramBuilder::ProgramBuilder(const ir::Value* accumulator) : accumulators_(accumulator ? 1 : 0) {
  if (accumulator) sources_[accumulator] = kAccumulator;
}

ProgramBuilder::ProgramBuilder(const ir::Value* first, const ir::Value* second) : accumulators_(2) {
  sources_[first] = kAccumulator;
  sources_[second] = kAccumulator - 1;
}

bool ProgramBuilder::room(size_t operands, size_t code) const {
  return operands_.size() + accumulators_ + operands <= kMaxProgramInputs &&
         code_.size() + unrounded_.size() + code <= kMaxProgramCode;
}

int ProgramBuilder::operand(ir::Value* value) {
  operands_.push_back(value);
  return ~static_cast<int>(operands_.size() - 1 + accumulators_);
}

int ProgramBuilder::source(ir::Value* value) {
  if (const auto rounding = unrounded_.find(value); rounding != unrounded_.end()) {
    sources_[value] = push(rounding->second, {sources_.at(value)});
    unrounded_.erase(rounding);
  }
  const auto it = sources_.find(value);
  if (it != sources_.end()) return it->second;
  const std::optional<float> x = number(value);
  return sources_[value] = x ? push(Opcode::constant, {}, *x) : operand(value);
}

void ProgramBuilder::alias(const ir::Value* value, const ir::Value* of) {
  sources_[value] = sources_.at(of);
  if (const auto rounding = unrounded_.find(of); rounding != unrounded_.end())
    unrounded_.emplace(value, rounding->second);
}

void ProgramBuilder::forget(const ir::Value* value) {
  sources_.erase(value);
  unrounded_.erase(value);
}

int ProgramBuilder::push(Opcode op, std::vector<int> sources, float x, float y) {
  code_.push_back({op, std::move(sources), {x, y}});
  return last();
}

// The instruction for a op b, as an affine one where b is a number and that loses nothing.
void ProgramBuilder::binary(Opcode op, int a, ir::Value* b) {
  const std::optional<float> x = number(b);
  int exponent = 0;
  if (x && op == Opcode::add) {
    push(Opcode::affine, {a}, 1, *x);
  } else if (x && op == Opcode::sub) {
    push(Opcode::affine, {a}, 1, -*x);
  } else if (x && op == Opcode::mul && std::isfinite(*x)) {
    push(Opcode::affine, {a}, *x, -0.0f);  // -0 keeps the sign of zero products
  } else if (x && op == Opcode::div && std::isnormal(*x) && std::isnormal(1 / *x) &&
             std::abs(std::frexp(*x, &exponent)) == 0.5f) {
    push(Opcode::affine, {a}, 1 / *x, -0.0f);
  } else {
    const int source_b = source(b);
    push(op, {a, source_b});
  }
}

void ProgramBuilder::add_quantize(const ir::Node& node) {
  const DType to = node.attrs<QuantizeAttrs>().to;
  binary(Opcode::div, source(node.input(0)), node.input(1));
  if (!is_factor_float8(to)) push(Opcode::round, {last()});
  if (node.input(2)) binary(Opcode::add, last(), node.input(2));
  if (is_factor_float8(to)) {
    push(to == DType::f8e4m3fn ? Opcode::round_e4m3 : Opcode::round_e5m2, {last()});
    return;
  }
  const IntegerRange range = *quantized_range(to);
  push(Opcode::clip, {last()}, static_cast<float>(range.low), static_cast<float>(range.high));
}

void ProgramBuilder::add_dequantize(const ir::Node& node) {
  int x = source(node.input(0));
  if (node.input(2)) {
    binary(Opcode::sub, x, node.input(2));
    x = last();
  }
  binary(Opcode::mul, x, node.input(1));
}

// The instructions alone, of which the last one makes the node's result.
bool ProgramBuilder::add_code(const ir::Node& node) {
  if (node.has_trait(kQuantization)) {
    constexpr size_t kLongest = 8;  // quotient, rounding, zero point and range, with constants of their own
    if (!room(node.num_inputs(), kLongest)) return false;
    node.is(OpKind::quantize) ? add_quantize(node) : add_dequantize(node);
    return true;
  }
  const std::optional<Opcode> op = opcode_of(node);
  if (!op || !room(node.num_inputs(), node.num_inputs() + 1)) return false;
  const int a = source(node.input(0));
  if (node.is(OpKind::activation)) {
    const auto& attrs = node.attrs<ActivationAttrs>();
    const int parameters = opcode_info(static_cast<int>(*op))->immediates;
    push(*op, {a}, parameters > 0 ? static_cast<float>(attrs.alpha) : 0,
         parameters > 1 ? static_cast<float>(attrs.beta) : 0);
  } else if (node.input(1)) {
    binary(*op, a, node.input(1));
  } else {
    push(*op, {a});
  }
  return true;
}

bool ProgramBuilder::add(const ir::Node& node, const Shape& index) {
  return add(node, std::vector<Read>(node.num_inputs(), Read{{index, {}}, {}}));
}

bool ProgramBuilder::add(const ir::Node& node, std::span<const Read> reads) {
  for (size_t i = 0; i < node.num_inputs(); ++i) {  // what is read otherwise is an operand of its own
    const auto before = last_reads_.find(node.input(i));
    if (before != last_reads_.end() && before->second != reads[i]) forget(node.input(i));
  }
  int result = 0;
  if (node.is(OpKind::cast)) {
    if (!room(1, 2)) return false;  // a constant, and the rounding of the result
    result = source(node.input(0));
    if (const std::optional<Opcode> rounding = rounding_of(*node.output()))
      unrounded_.emplace(node.output(), *rounding);
  } else {
    if (!add_code(node)) return false;
    result = last();
  }
  sources_[node.output()] = result;
  if (reads_.size() == operands_.size()) return true;
  while (reads_.size() < operands_.size()) {
    const ir::Value* operand = operands_[reads_.size()];
    Read read = reads[static_cast<size_t>(std::ranges::find(node.inputs(), operand) - node.inputs().begin())];
    std::optional<Shape> own = broadcast_index(operand->shape(), node.output()->shape(), read.map.index);
    if (!own) return false;
    read.map.index = *std::move(own);
    reads_.push_back(std::move(read));
  }
  for (size_t i = 0; i < node.num_inputs(); ++i) last_reads_.insert_or_assign(node.input(i), reads[i]);
  return true;
}

bool ProgramBuilder::add_moved(const ir::Node& node, size_t input, Read read) {
  if (!room(1, 0)) return false;
  sources_[node.output()] = operand(node.input(input));
  reads_.push_back(std::move(read));
  return true;
}

void ProgramBuilder::add_bias(ir::Value* bias, const Shape& index) {
  const int biased = push(Opcode::add, {kAccumulator, operand(bias)});
  reads_.push_back({{{index[1]}, {}}, {}});
  for (auto& [value, source] : sources_)  // what reads the root's result from here on
    if (source == kAccumulator) source = biased;
}

Program ProgramBuilder::program_of(const ir::Value* result) const {
  Program program;
  const size_t inputs = operands_.size() + accumulators_;
  program.num_inputs = static_cast<uint16_t>(inputs);
  const auto reg = [&](int source) {
    return static_cast<uint16_t>(source < 0 ? ~source : static_cast<int>(inputs) + source);
  };
  for (const Pending& pending : code_) {
    Instruction instruction{pending.op, {}, pending.immediates};
    for (size_t i = 0; i < pending.sources.size(); ++i) instruction.operands[i] = reg(pending.sources[i]);
    program.code.push_back(instruction);
  }
  program.outputs = {reg(sources_.at(result))};
  return program;
}

std::optional<Expression> ProgramBuilder::finish(const ir::Value* result, Space space) const {
  if (space.is_split()) space.drop_unit_axes();
  if (space.rank() > plan::kMaxRank) return std::nullopt;
  for (size_t i = 0; i < reads_.size(); ++i)
    if (!access_of(reads_[i].map, dense_strides(operands_[i]->shape(), Layout::linear), space)) return std::nullopt;
  Expression expression;  // member by member: GCC 12 frees twice what a failing aggregate has built
  expression.space = std::move(space);
  expression.program = program_of(result);
  expression.operands = operands_;
  expression.reads = reads_;
  return expression;
}

}  // namespace lathe
