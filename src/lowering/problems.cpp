// SPDX-License-Identifier: Apache-2.0
#include "lowering/problems.h"

#include "indexing/access.h"
#include "lowering/layouts.h"
#include "lowering/pages.h"
#include "lowering/plan_tensors.h"
#include "ops/sparsity.h"
#include "passes/stays_packed.h"

namespace lathe {
namespace {

using ir::Value;

// Dimensions whose parts lie within each other, as those of a reshape that a transpose follows do, are one again, and
// those of no part are there: attentions take no others.
Operand with_parts_joined(Operand operand) {
  size_t at = 0;
  for (size_t& count : operand.reassociation) {
    if (count == 0) operand.insert_dim(at, OperandDim()), count = 1;
    const auto nests = [&] { return operand.strides[at] == operand.dims[at + 1] * operand.strides[at + 1]; };
    for (; count > 1 && nests(); --count) {
      const OperandDim outer = operand.take_out_dim(at);
      operand.dims[at] = outer.extent * operand.dims[at];
    }
    at += count;
  }
  return operand;
}

}  // namespace

Dims Problems::at_optimum(const Shape& shape) const {
  Dims dims;
  for (const Expr& dim : shape) dims.push_back(dim.evaluate(optimum_).value_or(1));
  return dims;
}

Operand Problems::with_optimum(Operand operand) const {
  operand.opt_dims = at_optimum(operand.dims);
  // An estimated size may be smaller than a window: nothing is computed then, and nothing measured.
  for (int64_t& dim : operand.opt_dims) dim = std::max<int64_t>(dim, 0);
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

// As it lies in memory.
Operand Problems::operand_of(const Value* value) const {
  Operand operand;
  operand.dtype = value->dtype();
  operand.constant = value->constant();
  operand.weights = value->content();
  operand.derivation = value->known().derivation;
  operand.dims = value->shape();
  const Location location = operand.weights ? Location() : placement_.location(value);
  operand.strides = operand.weights ? dense_strides(operand.dims, Layout::linear) : location.strides;
  operand.offset = location.offset;
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
  return !reads_planes(region, options_.traits) || !placement_.is_dense_linear(x);
}

// A tensor as it lies along the axes of a region; of those that it does not have, it repeats its elements.
Operand Problems::along_axes(const Value* value, const Read& read, const Space& space) const {
  Operand operand = operand_of(value);
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

// The results: that of a region that moves elements along its axes, others as they lie.
void Problems::add_outputs(const Region& region, Problem& problem) const {
  if (!region.moves_elements()) {
    for (const Value* output : region.outputs) problem.outputs.push_back(operand_of(output));
    return;
  }
  const Space& space = region.expression.space;
  Operand& output = problem.outputs.emplace_back(along_axes(region.result(), {region.written, {}}, space));
  if (region.kind == RegionKind::kernel && space.is_split()) output.reassociation = space.reassociation();
  for (size_t d = 0; d < output.dims.size(); ++d)  // a stride of 0 would repeat
    if (output.strides[d] == Expr(0)) {
      output.strides[d] = volume(output.dims);
      output.opt_strides = at_optimum(output.strides);
    }
}

// Keys or values in the blocks of a pool.
Operand Problems::paged(const Expression& producer, const Value& input) const {
  const PageAxes axes = *page_axes(producer);
  const auto dim = [](const Operand& along, std::optional<size_t> axis) {
    return axis ? along.dim(*axis) : OperandDim();
  };
  Operand pool = operand_of(producer.operands[0]);
  const OperandDim blocks = pool.dim(*producer.paged_dim);
  const Operand along = along_axes(producer.operands[0], producer.reads[0], producer.space);
  const OperandDim keys = dim(along, axes.keys);
  pool.dims = input.shape();
  pool.strides = {0, dim(along, axes.heads).stride, keys.stride, dim(along, axes.size).stride};
  pool.offset = along.offset;
  pool.pages = {blocks, keys.extent, keys.opt_extent};
  const Operand named = along_axes(producer.operands[1], producer.reads[1], producer.space);
  Operand table = operand_of(producer.operands[1]);
  const OperandDim sequences = dim(named, axes.batch), numbers = dim(named, axes.blocks);
  table.dims = {sequences.extent, numbers.extent};
  table.strides = {sequences.stride, numbers.stride};
  table.offset = named.offset;
  pool.operands = {with_optimum(std::move(table))};
  if (producer.program.is_identity() && pool.dtype == input.dtype()) return with_optimum(std::move(pool));
  pool.program = producer.program;
  for (size_t i = 2; i < producer.operands.size(); ++i) {
    const Operand scale = along_axes(producer.operands[i], producer.reads[i], producer.space);
    Operand each = operand_of(producer.operands[i]);
    each.dims = input.shape();
    each.strides = {0, dim(scale, axes.heads).stride, 0, dim(scale, axes.size).stride};
    each.offset = scale.offset;
    pool.operands.push_back(with_optimum(std::move(each)));
  }
  return with_optimum(std::move(pool));
}

// What a kernel reads in place of an input of its root. Weights that it dequantises as it reads them lie as they are,
// and their scales in blocks.
Operand Problems::produced(const Expression& producer, const Value& input) const {
  if (producer.paged_dim) return paged(producer, input);
  const auto& [space, program, operands, reads, normalization, paged_dim] = producer;
  const ir::Node& last = *input.producer();
  const bool is_packed = stays_packed(last, options_.traits.arithmetic);
  const bool moves = !is_packed && producer.moves_elements(input.shape());
  Operand operand = moves ? along_axes(operands[0], reads[0], space) : operand_of(operands[0]);
  if (normalization) {
    operand.normalization = &normalization->attributes();
    for (size_t i = 1; i < operands.size(); ++i) operand.operands.push_back(operand_of(operands[i]));
    return operand;
  }
  if (moves) operand.reassociation = space.reassociation();
  if (moves && operands.size() == 1 && input.uses()[0].node->is(OpKind::attention))
    operand = with_optimum(with_parts_joined(std::move(operand)));
  if (program.is_identity() && operand.dtype == input.dtype()) return operand;
  operand.program = program;
  for (size_t i = 1; i < operands.size(); ++i) {
    operand.operands.push_back(is_packed ? operand_of(operands[i]) : along_axes(operands[i], reads[i], space));
    if (is_packed) operand.operands.back().blocks = blocks_of(last, i);
  }
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

// Weights that stay: what is 2:4 sparse of others may not be tomorrow.
bool Problems::is_sparse(const Problem& problem) const {
  if (!options_.tuner.sparsity || !problem.attributes || problem.inputs.size() < 2) return false;
  const Tensor* const weights = problem.inputs[1].is_computed() ? nullptr : problem.inputs[1].constant;
  if (!weights || weights->volume() == 0) return false;
  const DType dtype = weights->dtype();
  const auto dim = summed_dim(*problem.attributes, weights->dims());
  return dim && (dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::i8) && lathe::is_sparse(*weights, *dim);
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
  const auto& [space, program, operands, reads, normalization, paged_dim] = region.expression;
  const size_t of_program = normalization ? program.num_inputs - 1 : operands.size();  // then vectors
  for (size_t i = 0; i < operands.size(); ++i)
    problem.operands.push_back(i < of_program ? along_axes(operands[i], reads[i], space) : operand_of(operands[i]));
  problem.program = program;
  problem.pairs = region.pairs;
  add_outputs(region, problem);
  if (normalization) problem.outputs.back().normalization = &normalization->attributes();
  problem.sparse = is_sparse(problem);
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
