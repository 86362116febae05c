// SPDX-License-Identifier: Apache-2.0
#include "lowering/problems.h"

#include "indexing/access.h"
#include "lowering/layouts.h"
#include "lowering/plan_tensors.h"
#include "passes/stays_packed.h"

namespace lathe {

using ir::Value;

Dims Problems::at_optimum(const Shape& shape) const {
  Dims dims;
  for (const Expr& dim : shape) dims.push_back(dim.evaluate(optimum_).value_or(1));
  return dims;
}

Operand Problems::with_optimum(Operand operand) const {
  operand.opt_dims = at_optimum(operand.dims);
  operand.opt_strides = at_optimum(operand.strides);
  return operand;
}

Operand Problems::operand_at(const plan::TensorDesc& tensor) const {
  Operand operand;
  operand.dtype = tensor.dtype;
  operand.dims = tensor.dims;
  operand.strides = strides_of(tensor);
  operand.offset = tensor.offset;
  return with_optimum(std::move(operand));
}

Operand Problems::operand_of(const Value* value, const Shape* broadcast_to) const {
  Operand operand;
  operand.dtype = value->dtype();
  operand.constant = value->constant();
  operand.weights = value->content();
  operand.derivation = value->known().derivation;
  operand.dims = value->shape();
  const Location location = operand.weights ? Location() : placement_.location(value);
  operand.strides = operand.weights ? dense_strides(operand.dims, Layout::linear) : location.strides;
  operand.offset = location.offset;
  if (broadcast_to) {
    Shape strides(broadcast_to->size(), 0);
    const size_t lead = broadcast_to->size() - operand.dims.size();
    for (size_t d = 0; d < operand.dims.size(); ++d)
      if (operand.dims[d] != Expr(1) || (*broadcast_to)[lead + d] == Expr(1)) strides[lead + d] = operand.strides[d];
    operand.dims = *broadcast_to;
    operand.strides = std::move(strides);
  }
  return with_optimum(std::move(operand));
}

// The dims that a channels-last copy has room for.
Shape Problems::pixel_dims(const Value* x) const {
  Shape dims = x->shape();
  const auto channels = dims[1].as_constant();
  if (channels && *channels < options_.traits.least_pixel) dims[1] = options_.traits.least_pixel;
  return dims;
}

// Convolutions read channels-last, but for planes.
bool Problems::wants_channels_last(const Region& region) const {
  if (options_.tactics.empty() || region.kind != RegionKind::kernel || !is_convolution(region.root->info()))
    return false;
  const Value* x = region.input(0);
  if (x->rank() < 3 || x->rank() > 5 || placement_.location(x).strides[1] == Expr(1) || x->shape()[1] == Expr(1))
    return false;
  return !reads_planes(region, options_.traits.least_pixel) || !placement_.is_dense_linear(x);
}

// An operand of the region's program, which broadcasts to `dims`.
Operand Problems::operand_in(const Region& region, const Value* value, const Shape& dims) const {
  if (!region.is_bias(*value)) return operand_of(value, &dims);
  Operand bias = operand_of(value);
  bias.dims = dims;
  bias.strides.assign(dims.size(), 0);
  bias.strides[1] = 1;
  return with_optimum(std::move(bias));
}

// A tensor as it lies along the axes of a region; of those that it does not have, it repeats its elements.
Operand Problems::along_axes(Operand operand, const Read& read, const Space& space) const {
  const Access access = *access_of(read.map, operand.strides, space);  // grouping has asked
  operand.dims = space.extents();
  operand.strides = access.strides;
  operand.offset += access.offset;
  if (read.fill) operand.padding = {Shape(operand.dims.size(), 0), *read.fill};
  for (const Bound& bound : access.bounds) {
    operand.dims[bound.axis] = bound.end - bound.begin;
    operand.padding->begin[bound.axis] = bound.begin;
    operand.offset += bound.begin * access.strides[bound.axis];
  }
  return with_optimum(std::move(operand));
}

// The program's operands and the result of a region that moves elements.
void Problems::add_moved(const Region& region, Problem& problem) const {
  const auto& [space, program, operands, reads] = region.expression;
  for (size_t i = 0; i < operands.size(); ++i)
    problem.operands.push_back(along_axes(operand_of(operands[i]), reads[i], space));
  problem.outputs = {along_axes(operand_of(region.result()), {region.written, {}}, space)};
  Operand& output = problem.outputs[0];
  if (region.kind == RegionKind::kernel && space.is_split()) output.reassociation = space.reassociation();
  for (size_t d = 0; d < output.dims.size(); ++d)  // a stride of 0 would repeat
    if (output.strides[d] == Expr(0)) {
      output.strides[d] = volume(output.dims);
      output.opt_strides = at_optimum(output.strides);
    }
}

void Problems::add_operands(const Region& region, Problem& problem) const {
  const Shape& result = region.result()->shape();
  for (const Value* value : region.expression.operands) problem.operands.push_back(operand_in(region, value, result));
  for (const Value* output : region.outputs) problem.outputs.push_back(operand_of(output));
}

// Weights that a kernel dequantises as it reads them.
Operand Problems::packed(const Expression& producer, const ir::Node& dequantize) const {
  Operand operand = operand_of(producer.operands[0]);
  operand.program = producer.program;
  for (size_t i = 1; i < producer.operands.size(); ++i) {
    operand.operands.push_back(operand_of(producer.operands[i]));
    operand.operands.back().blocks = blocks_of(dequantize, i);
  }
  return operand;
}

// What a kernel reads in place of an input of its root.
Operand Problems::produced(const Expression& producer, const Value& input) const {
  if (stays_packed(*input.producer(), options_.traits.arithmetic)) return packed(producer, *input.producer());
  const bool moves = producer.moves_elements(input.shape());
  const auto read = [&](size_t i) {
    return moves ? along_axes(operand_of(producer.operands[i]), producer.reads[i], producer.space)
                 : operand_of(producer.operands[i], i == 0 ? nullptr : &input.shape());
  };
  Operand operand = read(0);
  if (moves) operand.reassociation = producer.space.reassociation();
  if (producer.program.is_identity() && operand.dtype == input.dtype()) return operand;
  operand.program = producer.program;
  for (size_t i = 1; i < producer.operands.size(); ++i) operand.operands.push_back(read(i));
  return operand;
}

void Problems::add_inputs(const Region& region, Problem& problem) const {
  problem.attributes = &region.root->attributes();
  const bool bias = is_convolution(region.root->info());
  for (size_t i = 0; i < region.root->num_inputs() && !(bias && i == 2); ++i) {
    const Value* input = region.root->input(i);
    const Expression* producer = region.producer_of(i);
    problem.inputs.push_back(producer ? produced(*producer, *input) : input ? operand_of(input) : Operand());
    problem.inputs.back().omitted = !input;
    if (i == 0 && wants_channels_last(region)) {
      problem.inputs[0].strides = dense_strides(pixel_dims(region.input(0)), Layout::channels_last);
      problem.inputs[0].offset = 0;
      problem.inputs[0] = with_optimum(std::move(problem.inputs[0]));
    }
  }
}

Problem Problems::empty() const {
  Problem problem;
  problem.symbols = optimum_;
  problem.target = options_.tuner.target;
  problem.tf32 = options_.tuner.tf32;
  return problem;
}

Problem Problems::of(const Region& region) const {
  Problem problem = empty();
  if (region.kind != RegionKind::pointwise) add_inputs(region, problem);
  region.moves_elements() ? add_moved(region, problem) : add_operands(region, problem);
  problem.program = region.expression.program;
  return problem;
}

Problem Problems::of_copy(const plan::TensorDesc& from, const plan::TensorDesc& to) const {
  Problem problem = empty();
  problem.operands = {operand_at(from)};
  problem.outputs = {operand_at(to)};
  problem.program = {1, {}, {0}};
  return problem;
}

}  // namespace lathe
