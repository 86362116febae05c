// SPDX-License-Identifier: Apache-2.0
// The fields of the metadata's tables (plan.fbs), each named once: encoder, decoder and what bounds the size of the
// result are visitors of these functions, so that a new field of a structure is a line in plan.h, in plan.fbs and here.
//
// What a visitor `io` is asked for, with the field's place in its table:
//   text, number, choice (a number up to the last one known), expression, digest
//   shape, numbers, strings            lists of expressions, numbers and strings
//   structs                            a list of structures without references: pack() and unpack()
//   tables                             a list of structures that have a table each
//   children                           the lists that the members of another list have, as one list in their order
//   work                               the alternative that a step is
//   place                              bytes in the code section
// and in unpack() for index and value_of an expression. A visitor that has met an error goes on and does nothing.
#pragma once

#include <concepts>

#include "plan/limits.h"
#include "plan/plan.h"
#include "plan_generated.h"

namespace lathe::plan {

template <class T, class Plain>
concept Is = std::same_as<std::remove_const_t<T>, Plain>;

// Structures without references.

template <class Io>
fb::Buffer pack(Io& io, const Buffer& buffer) {
  return {io.index(buffer.bytes), buffer.first, buffer.last};
}
template <class Io>
void unpack(Io& io, const fb::Buffer& from, Buffer& buffer) {
  buffer = {io.value(from.bytes()), from.first(), from.last()};
}

template <class Io>
fb::SymbolProfile pack(Io&, const SymbolProfile& symbol) {
  return {symbol.min, symbol.opt, symbol.max};
}
template <class Io>
void unpack(Io&, const fb::SymbolProfile& from, SymbolProfile& symbol) {
  symbol = {from.min(), from.opt(), from.max()};
}

template <class Io>
fb::LaunchArg pack(Io& io, const LaunchArg& arg) {
  return {static_cast<uint8_t>(arg.kind), arg.index, io.index(arg.value)};
}
template <class Io>
void unpack(Io& io, const fb::LaunchArg& from, LaunchArg& arg) {
  arg = {io.known(from.kind(), LaunchArg::tensor_map, "kind of a launch's argument"), from.index(),
         io.value(from.value())};
}

template <class Io>
fb::StepCount pack(Io& io, const StepCount& count) {
  return {count.symbol, count.input, io.index(count.element)};
}
template <class Io>
void unpack(Io& io, const fb::StepCount& from, StepCount& count) {
  count = {from.symbol(), from.input(), io.value(from.element())};
}

template <class Io>
fb::ParallelSection pack(Io&, const ParallelSection& section) {
  return {section.first, section.end};
}
template <class Io>
void unpack(Io&, const fb::ParallelSection& from, ParallelSection& section) {
  section = {from.first(), from.end()};
}

template <class Io>
fb::Slice pack(Io&, const Slice& slice) {
  return {slice.axis, slice.reversed};
}
template <class Io>
void unpack(Io&, const fb::Slice& from, Slice& slice) {
  slice = {from.axis(), from.reversed()};
}

// Tables.

template <class Io, Is<Symbol> T>
void fields(Io& io, T& symbol) {
  using F = fb::Symbol;
  io.text(F::VT_NAME, symbol.name);
  io.choice(F::VT_SOURCE, symbol.source, SymbolSource::computed, "symbol source");
  io.number(F::VT_TENSOR, symbol.tensor);
  io.number(F::VT_INDEX, symbol.index);
  io.number(F::VT_MIN, symbol.range.min);
  io.number(F::VT_MAX, symbol.range.max);
}

template <class Io, Is<Profile> T>
void fields(Io& io, T& profile) {
  io.template structs<fb::SymbolProfile>(fb::Profile::VT_SYMBOLS, profile.symbols, kMaxEntries);
}

template <class Io, Is<Constraint> T>
void fields(Io& io, T& constraint) {
  using F = fb::Constraint;
  io.choice(F::VT_RELATION, constraint.relation, Relation::at_most, "relation of a constraint");
  io.expression(F::VT_A, constraint.a);
  io.expression(F::VT_B, constraint.b);
  io.text(F::VT_WHERE, constraint.where);
}

template <class Io, Is<TensorDesc> T>
void fields(Io& io, T& tensor) {
  using F = fb::Tensor;
  io.text(F::VT_NAME, tensor.name);
  io.dtype(F::VT_DTYPE, tensor.dtype);
  io.choice(F::VT_STORAGE, tensor.storage, StorageKind::dynamic, "storage kind");
  io.number(F::VT_INDEX, tensor.index);
  io.shape(F::VT_DIMS, tensor.dims);
  io.shape(F::VT_STRIDES, tensor.strides);
  io.expression(F::VT_OFFSET, tensor.offset);
  io.choice(F::VT_KIND, tensor.kind, ValueKind::optional_sequence, "kind of value");
}

template <class Io, Is<Constant> T>
void fields(Io& io, T& constant) {
  using F = fb::Constant;
  io.text(F::VT_NAME, constant.name);
  io.number(F::VT_OFFSET, constant.offset);
  io.number(F::VT_BYTES, constant.bytes);
  io.digest(F::VT_DIGEST, constant.digest);
  io.number(F::VT_DERIVED, constant.derived);
  io.number(F::VT_STRIPPED, constant.stripped);
}

template <class Io, Is<RefitWeights> T>
void fields(Io& io, T& weights) {
  using F = fb::RefitWeights;
  io.text(F::VT_NAME, weights.name);
  io.dtype(F::VT_DTYPE, weights.dtype);
  io.numbers(F::VT_DIMS, weights.dims);
  io.strings(F::VT_LAYERS, weights.layers);
  io.numbers(F::VT_ROLES, weights.roles);
  io.digest(F::VT_DIGEST, weights.digest);
  io.number(F::VT_IS_FIXED, weights.is_fixed);
  io.text(F::VT_MODEL_NAME, weights.model_name);
  io.number(F::VT_IS_ADDED, weights.is_added);
}

template <class Io, Is<RefitOperand> T>
void fields(Io& io, T& operand) {
  using F = fb::RefitOperand;
  io.number(F::VT_CONSTANT, operand.constant);
  io.dtype(F::VT_DTYPE, operand.dtype);
  io.numbers(F::VT_DIMS, operand.dims);
}

template <class Io, Is<RefitStep> T>
void fields(Io& io, T& step) {
  using F = fb::RefitStep;
  io.text(F::VT_OP, step.op);
  io.text(F::VT_ATTRIBUTES, step.attributes);
  io.numbers(F::VT_PACKING, step.packing);
  io.numbers(F::VT_INPUTS, step.inputs);
  io.number(F::VT_OUTPUTS, step.outputs);
}

template <class Io, Is<Binding> T>
void fields(Io& io, T& binding) {
  using F = fb::Binding;
  io.text(F::VT_NAME, binding.name);
  io.number(F::VT_IS_INPUT, binding.is_input);
  io.number(F::VT_TENSOR, binding.tensor);
  io.number(F::VT_IS_SHAPE_TENSOR, binding.is_shape_tensor);
  io.strings(F::VT_DIM_NAMES, binding.dim_names);
}

template <class Io, Is<HostKernel> T>
void fields(Io& io, T& host) {
  using F = fb::HostKernel;
  io.text(F::VT_KERNEL, host.kernel);
  io.numbers(F::VT_PARAMS, host.params);
  io.text(F::VT_PROGRAM, host.program);
}

template <class Io, Is<DeviceLaunches> T>
void fields(Io& io, T& device) {  // its launches are Metadata.launches
  using F = fb::DeviceLaunches;
  io.text(F::VT_KERNEL, device.kernel);
  io.text(F::VT_PROGRAM, device.program);
  io.expression(F::VT_WORKSPACE, device.workspace);
}

template <class Io, Is<Copy> T>
void fields(Io&, T&) {}

template <class Io, Is<Evaluation> T>
void fields(Io&, T&) {}

template <class Io, Is<Block> T>
void fields(Io& io, T& block) {  // its bodies are Metadata.bodies
  using F = fb::Block;
  io.choice(F::VT_KIND, block.kind, BlockKind::call, "kind of block");
  io.number(F::VT_CARRIED, block.carried);
  io.template structs<fb::Slice>(F::VT_SCANNED, block.scanned, kMaxOperands);
  io.template structs<fb::Slice>(F::VT_STACKED, block.stacked, kMaxOperands);
  io.shape(F::VT_TRIPS, block.trips);
}

template <class Io, Is<PluginCall> T>
void fields(Io&, T&) {}

template <class Io, Is<Step> T>
void fields(Io& io, T& step) {
  using F = fb::Step;
  io.work(F::VT_WORK_TYPE, F::VT_WORK, step.work);
  io.numbers(F::VT_INPUTS, step.inputs);
  io.numbers(F::VT_OUTPUTS, step.outputs);
  io.text(F::VT_OP, step.op);
  io.text(F::VT_ATTRIBUTES, step.attributes);
  io.template structs<fb::StepCount>(F::VT_COUNTS, step.counts, kMaxOperands);
  io.text(F::VT_NAME, step.name);
  io.strings(F::VT_ORIGIN, step.origin);
  io.text(F::VT_TACTIC, step.tactic);
  io.number(F::VT_MILLISECONDS, step.milliseconds);
  io.number(F::VT_STREAM, step.stream);
}

// Children: the field with their parent's number is the first of each table, and not listed.

template <class Io, Is<TensorMap> T>
void fields(Io& io, T& map) {
  using F = fb::TensorMap;
  io.number(F::VT_INPUT, map.input);
  io.dtype(F::VT_DTYPE, map.dtype);
  io.number(F::VT_ROUNDS, map.rounds);
  io.shape(F::VT_DIMS, map.dims);
  io.shape(F::VT_STRIDES, map.strides);
  io.numbers(F::VT_BOX, map.box);
  io.numbers(F::VT_WINDOWS, map.windows);
}

template <class Io, Is<Launch> T>
void fields(Io& io, T& launch) {
  using F = fb::Launch;
  io.number(F::VT_CODE, launch.code);
  io.text(F::VT_ENTRY, launch.entry);
  io.grid(F::VT_GRID, launch.grid);
  io.number(F::VT_BLOCK, launch.block);
  io.number(F::VT_SHARED_BYTES, launch.shared_bytes);
  io.number(F::VT_CLUSTER, launch.cluster);
  io.number(F::VT_OVERLAPS, launch.overlaps);
  io.template structs<fb::LaunchArg>(F::VT_ARGS, launch.args, kMaxOperands);
  io.text(F::VT_LIBRARY, launch.library);
  io.tables(F::VT_MAPS, launch.maps);
}

template <class Io, Is<Body> T>
void fields(Io& io, T& body) {
  using F = fb::Body;
  io.number(F::VT_STEPS, body.steps);
  io.numbers(F::VT_PARAMS, body.params);
  io.numbers(F::VT_RESULTS, body.results);
  io.tables(F::VT_CONSTRAINTS, body.constraints);
}

template <class Io, Is<CodeImage> T>
void fields(Io& io, T& image) {
  using F = fb::CodeImage;
  io.choice(F::VT_FORM, image.form, CodeForm::source, "form of device code");
  io.text(F::VT_TARGET, image.target);
  io.place(F::VT_OFFSET, F::VT_BYTES, image.bytes);
}

template <class Io, Is<SourceFile> T>
void fields(Io& io, T& header) {
  using F = fb::SourceFile;
  io.text(F::VT_NAME, header.name);
  io.place(F::VT_OFFSET, F::VT_BYTES, header.bytes);
}

template <class Io, Is<std::pair<std::string, std::string>> T>
void fields(Io& io, T& pair) {
  io.text(fb::KeyValue::VT_KEY, pair.first);
  io.text(fb::KeyValue::VT_VALUE, pair.second);
}

// The member `list` of a step's work where it is an A; null where it is not.
template <class A, class T, class StepType>
auto* list_in(StepType& step, std::vector<T> A::*list) {
  auto* work = std::get_if<A>(&step.work);
  return work ? &(work->*list) : nullptr;
}

// But for numbers, expressions and strings, which the visitors gather.
template <class Io, Is<Plan> T>
void fields(Io& io, T& plan) {
  using F = fb::Metadata;
  io.text(F::VT_NAME, plan.name);
  io.number(F::VT_THREADS, plan.threads);
  io.tables(F::VT_SYMBOLS, plan.symbols);
  io.tables(F::VT_PROFILES, plan.profiles);
  io.tables(F::VT_CONSTRAINTS, plan.constraints);
  io.tables(F::VT_TENSORS, plan.tensors);
  io.template structs<fb::Buffer>(F::VT_BUFFERS, plan.buffers, kMaxEntries);
  io.tables(F::VT_CONSTANTS, plan.constants);
  io.number(F::VT_DYNAMIC_SLOTS, plan.dynamic_slots);
  io.tables(F::VT_BINDINGS, plan.bindings);
  io.tables(F::VT_STEPS, plan.steps);
  io.children(F::VT_LAUNCHES, plan.steps, kMaxLaunches, "a launch belongs to no step",
              [](auto& step) { return list_in(step, &DeviceLaunches::launches); });
  io.children(F::VT_BODIES, plan.steps, kMaxBodies, "a body belongs to no block",
              [](auto& step) { return list_in(step, &Block::bodies); });
  io.count(F::VT_MODULES, plan.codes);
  io.children(F::VT_CODE, plan.codes, kMaxImages, "an image belongs to no code module",
              [](auto& module) { return &module.images; });
  io.text(F::VT_WEIGHTS_FILE, plan.weights_file);
  io.tables(F::VT_USER, plan.metadata);
  io.text(F::VT_TUNED_ON, plan.tuned_on);
  io.template structs<fb::ParallelSection>(F::VT_SECTIONS, plan.sections, kMaxEntries);
  io.choice(F::VT_REFIT_KIND, plan.refit.kind, RefitKind::identical, "kind of refit");
  io.tables(F::VT_REFIT_WEIGHTS, plan.refit.weights);
  io.tables(F::VT_REFIT_OPERANDS, plan.refit.operands);
  io.tables(F::VT_REFIT_STEPS, plan.refit.steps);
  io.tables(F::VT_HEADERS, plan.headers);
  io.number(F::VT_REFIT_CODE, plan.refit.code);
  io.number(F::VT_DEFLATED_CODE, plan.is_code_deflated);
}

}  // namespace lathe::plan
