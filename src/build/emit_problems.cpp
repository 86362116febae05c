// SPDX-License-Identifier: Apache-2.0
// What tactics are asked to solve for a region.
#include "build/emitter.h"
#include "indexing/access.h"

namespace lathe {

using ir::Value;

// The dims that a channels-last copy has room for.
Shape Emitter::pixel_dims(const Value* x) const {
  Shape dims = x->shape();
  const auto channels = dims[1].as_constant();
  if (channels && *channels < least_pixel_) dims[1] = least_pixel_;
  return dims;
}

// Convolutions read channels-last. The few channels of a network's input they read as they come, unless the device
// would rather have pixels of a certain size.
bool Emitter::wants_channels_last(const Region& region) const {
  if (tactics_.empty() || (!region.root->is(OpKind::convolution) && !region.root->is(OpKind::deconvolution)))
    return false;
  const Value* x = region.input(0);
  if (x->rank() < 3 || x->rank() > 5 || placement_.location(x).strides[1] == Expr(1) || x->shape()[1] == Expr(1))
    return false;
  const auto channels = x->shape()[1].as_constant();
  constexpr int64_t kFewChannels = 4;
  const bool planar = region.root->is(OpKind::convolution) && region.root->attrs<ConvolutionAttrs>().groups == 1 &&
                      channels && *channels <= kFewChannels && placement_.is_dense_linear(x);
  return !planar || least_pixel_ > 0;
}

// An operand of the region's program, which broadcasts to `dims`.
Operand Emitter::operand_in(const Region& region, const Value* value, const Shape& dims) const {
  const bool is_bias =
      region.kind != RegionKind::pointwise && value == region.root->input(2) && value->rank() == 1 && dims.size() > 1;
  if (!is_bias) return operand_of(value, &dims);
  Operand bias = operand_of(value);  // a convolution's bias runs along dimension 1
  bias.dims = dims;
  bias.strides.assign(dims.size(), 0);
  bias.strides[1] = 1;
  bias.opt_dims = at_optimum(bias.dims);
  bias.opt_strides = at_optimum(bias.strides);
  return bias;
}

// A tensor as it lies along the axes of a region; of those that it does not have, it repeats its elements.
Operand Emitter::along_axes(Operand operand, const Region::Read& read, const Space& space) const {
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
  operand.opt_dims = at_optimum(operand.dims);
  operand.opt_strides = at_optimum(operand.strides);
  return operand;
}

// The program's operands and the result of a region that moves elements.
void Emitter::add_arranged(const Region& region, Problem& problem) const {
  const Region::Arrangement& arrangement = *region.arrangement;
  for (size_t i = 0; i < region.operands.size(); ++i)
    problem.operands.push_back(along_axes(operand_of(region.operands[i]), arrangement.operands[i], arrangement.space));
  problem.outputs = {along_axes(operand_of(region.result()), {arrangement.result, {}}, arrangement.space)};
  Operand& output = problem.outputs[0];
  if (region.kind == RegionKind::kernel && arrangement.space.is_split()) output.parts = arrangement.space.parts();
  for (size_t d = 0; d < output.dims.size(); ++d)  // a stride of 0 would repeat
    if (output.strides[d] == Expr(0)) {
      output.strides[d] = volume(output.dims);
      output.opt_strides = at_optimum(output.strides);
    }
}

void Emitter::add_operands(const Region& region, Problem& problem) const {
  const Shape& result = region.result()->shape();
  for (const Value* value : region.operands) problem.operands.push_back(operand_in(region, value, result));
  for (const Value* output : region.outputs) problem.outputs.push_back(operand_of(output));
}

void Emitter::add_inputs(const Region& region, Problem& problem) const {
  problem.attributes = &region.root->attributes();
  const bool bias = region.root->is(OpKind::convolution) || region.root->is(OpKind::deconvolution);
  for (size_t i = 0; i < region.root->num_inputs() && !(bias && i == 2); ++i) {
    const Value* input = region.input(i);
    problem.inputs.push_back(input ? operand_of(input) : Operand());
    problem.inputs.back().omitted = !input;
    if (const Region::Reading* reading = region.reading_of(i)) {
      problem.inputs[i] = along_axes(problem.inputs[i], {reading->map, {}}, reading->space);
      problem.inputs[i].parts = reading->space.parts();
    }
    if (i == 0 && wants_channels_last(region)) {
      problem.inputs[0].strides = dense_strides(pixel_dims(input), Layout::channels_last);
      problem.inputs[0].opt_strides = at_optimum(problem.inputs[0].strides);
      problem.inputs[0].offset = 0;
    }
  }
}

Problem Emitter::problem_of(const Region& region) const {
  Problem problem;
  if (region.kind != RegionKind::pointwise) add_inputs(region, problem);
  region.arrangement ? add_arranged(region, problem) : add_operands(region, problem);
  for (const Region::Prologue& prologue : region.prologues) {
    std::vector<Operand> operands;
    for (const Value* value : prologue.operands) operands.push_back(operand_of(value, &prologue.source->shape()));
    problem.add_prologue(prologue.input, prologue.program, std::move(operands));
  }
  problem.program = region.program;
  problem.symbols = optimum_;
  return problem;
}

}  // namespace lathe
