// SPDX-License-Identifier: Apache-2.0
// Storages, tensors and constants of a plan. Steps are in emit_steps.cpp.
#include "build/emitter.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/hash.h"

namespace lathe {

using ir::Value;
using plan::StorageKind;
using plan::TensorId;

Emitter::Emitter(const ir::Graph& graph, const Placement& placement, std::vector<plan::Profile> profiles, Tuner& tuner,
                 const BuildOptions& options, BuiltPlan& out, Mode mode)
    : graph_(graph),
      placement_(placement),
      tuner_(tuner),
      tactics_(options.tactics),
      least_pixel_(options.least_pixel),
      counted_(options.counted),
      out_(out),
      mode_(mode),
      plan_(out.plan) {
  plan_.name = graph.name();
  plan_.symbols = graph.symbols();
  plan_.profiles = std::move(profiles);
  for (const plan::SymbolProfile& symbol : plan_.profiles[0].symbols) optimum_.push_back(symbol.opt);
}

// A graph output's memory is written directly by its producer when the value, or the tensor whose elements it all views
// in row-major order, has a storage of its own. Other outputs are copied at the end.
Result<> Emitter::emit_inputs() {
  const auto inputs = static_cast<uint32_t>(graph_.inputs().size());
  for (uint32_t i = 0; i < inputs; ++i) {
    const Value* input = graph_.inputs()[i];
    storages_[input] = {StorageKind::binding, i};
    plan::Binding binding{input->name(), true, tensor_of(input), false, {}};
    for (const Expr& dim : input->shape()) {
      const std::optional<SymbolId> symbol = dim.as_symbol();
      binding.dim_names.push_back(symbol ? plan_.symbols[*symbol].name : "");
    }
    plan_.bindings.push_back(std::move(binding));
  }
  outputs_written_.resize(graph_.outputs().size());
  for (uint32_t i = 0; i < graph_.outputs().size(); ++i) {
    const auto& [name, value] = graph_.outputs()[i];
    const Location location = placement_.location(value);
    const bool own = location.root->producer() && !location.root->constant() &&
                     !output_bindings_.contains(location.root) && placement_.is_dense_linear(value) &&
                     volume(value->shape()) == volume(placement_.room(location.root));
    if (own) {
      output_bindings_[location.root] = inputs + i;
      outputs_written_[i] = true;
    }
  }
  return {};
}

Emitter::Storage Emitter::storage_of(const Value* root) {
  const auto it = storages_.find(root);
  if (it != storages_.end()) return it->second;
  Storage storage{};
  if (const auto output = output_bindings_.find(root); output != output_bindings_.end()) {
    storage = {StorageKind::binding, output->second};
  } else if (depends_on_data(root->shape(), plan_.symbols)) {
    storage = {StorageKind::dynamic, plan_.dynamic_slots++};
  } else {
    storage = {StorageKind::arena, static_cast<uint32_t>(plan_.buffers.size())};
    plan_.buffers.push_back({volume(placement_.room(root)) * static_cast<int64_t>(size_of(root->dtype())), 0, 0});
  }
  return storages_[root] = storage;
}

Shape Emitter::strides_of(const plan::Tensor& tensor) {
  return tensor.strides.empty() ? dense_strides(tensor.dims, Layout::linear) : tensor.strides;
}

TensorId Emitter::add_tensor(plan::Tensor tensor) {
  if (is_dense(tensor.dims, strides_of(tensor), Layout::linear)) tensor.strides.clear();
  plan_.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(plan_.tensors.size() - 1);
}

TensorId Emitter::tensor_at(const Value* value, Shape dims, Shape strides, const Location& location) {
  const Storage storage = storage_of(location.root);
  return add_tensor({value->name(), value->dtype(), std::move(dims), std::move(strides), storage.kind, storage.index,
                     location.offset});
}

TensorId Emitter::tensor_of(const Value* value) {
  if (const Tensor* content = value->constant()) return constant_of(*content);
  const auto it = tensors_.find(value);
  if (it != tensors_.end()) return it->second;
  const Location location = placement_.location(value);
  return tensors_[value] = tensor_at(value, value->shape(), location.strides, location);
}

TensorId Emitter::constant_of(const Tensor& content) {
  const uint64_t key = Hasher().add(content.raw()).value();
  std::vector<TensorId>& same = constants_[key];
  const auto at = [&](const plan::Tensor& tensor) { return plan_.constants[tensor.index]; };
  const plan::Constant* twin = nullptr;
  for (TensorId id : same) {
    const plan::Tensor& tensor = plan_.tensors[id];
    if (at(tensor).bytes != content.bytes()) continue;
    if (!content.raw().empty() &&  // there may be no weights yet
        std::memcmp(out_.weights.data() + at(tensor).offset, content.data(), content.bytes()) != 0)
      continue;
    if (tensor.dtype == content.dtype() && as_constant(tensor.dims) == content.dims()) return id;
    twin = &plan_.constants[tensor.index];
  }
  uint32_t index = 0;
  if (twin) {
    index = static_cast<uint32_t>(twin - plan_.constants.data());
  } else {
    index = static_cast<uint32_t>(plan_.constants.size());
    const size_t offset = (out_.weights.size() + 63) / 64 * 64;
    out_.weights.resize(offset + content.bytes());
    std::ranges::copy(content.raw(), out_.weights.begin() + static_cast<ptrdiff_t>(offset));
    plan_.constants.push_back({offset, content.bytes()});
  }
  same.push_back(
      add_tensor({"constant", content.dtype(), to_shape(content.dims()), {}, StorageKind::constant, index, 0}));
  return same.back();
}

TensorId Emitter::temporary(std::string name, DType dtype, const Shape& dims) {
  plan::Tensor tensor{std::move(name), dtype, dims, {}, StorageKind::arena, 0, 0};
  if (depends_on_data(dims, plan_.symbols)) {
    tensor.storage = StorageKind::dynamic;
    tensor.index = plan_.dynamic_slots++;
  } else {
    tensor.index = static_cast<uint32_t>(plan_.buffers.size());
    plan_.buffers.push_back({volume(dims) * static_cast<int64_t>(size_of(dtype)), 0, 0});
  }
  return add_tensor(std::move(tensor));
}

Result<TensorId> Emitter::dense_of(const Value* value) {
  if (value->constant() || placement_.is_dense_linear(value)) return tensor_of(value);
  const auto it = dense_.find(value);
  if (it != dense_.end()) return it->second;
  const TensorId copy = temporary(value->name(), value->dtype(), value->shape());
  LATHE_TRY(emit_copy(tensor_of(value), copy, "reformat " + value->name(), {}));
  return dense_[value] = copy;
}

Dims Emitter::at_optimum(const Shape& shape) const {
  Dims dims;
  for (const Expr& dim : shape) dims.push_back(dim.evaluate(optimum_).value_or(1));
  return dims;
}

Operand Emitter::operand_of(const Value* value, const Shape* broadcast_to) const {
  Operand operand;
  operand.dtype = value->dtype();
  operand.constant = value->constant();
  operand.dims = value->shape();
  const Location location = operand.constant ? Location() : placement_.location(value);
  operand.strides = operand.constant ? dense_strides(operand.dims, Layout::linear) : location.strides;
  operand.offset = location.offset;
  if (broadcast_to) {
    Shape strides(broadcast_to->size(), 0);
    const size_t lead = broadcast_to->size() - operand.dims.size();
    for (size_t d = 0; d < operand.dims.size(); ++d)
      if (operand.dims[d] != Expr(1) || (*broadcast_to)[lead + d] == Expr(1)) strides[lead + d] = operand.strides[d];
    operand.dims = *broadcast_to;
    operand.strides = std::move(strides);
  }
  operand.opt_dims = at_optimum(operand.dims);
  operand.opt_strides = at_optimum(operand.strides);
  return operand;
}

// Passes fold most symbols away; an input whose values no expression needs is no shape input. A size that no step
// computes any more constrains nothing.
void Emitter::drop_unused_symbols() {
  std::vector<SymbolId> used;
  std::vector<Constraint> constraints = std::exchange(plan_.constraints, {});
  const auto each_expr = [&](const auto& visit) {
    for (plan::Tensor& tensor : plan_.tensors) {
      std::for_each(tensor.dims.begin(), tensor.dims.end(), visit);
      std::for_each(tensor.strides.begin(), tensor.strides.end(), visit);
      visit(tensor.offset);
    }
    for (plan::Buffer& buffer : plan_.buffers) visit(buffer.bytes);
    for (Constraint& constraint : plan_.constraints) visit(constraint.a), visit(constraint.b);
    for (plan::Step& step : plan_.steps) {
      visit(step.workspace);
      for (plan::StepCount& count : step.counts) visit(count.element);
      for (Launch& launch : step.launches) {
        std::for_each(launch.grid.begin(), launch.grid.end(), visit);
        for (LaunchArg& arg : launch.args) visit(arg.value);
      }
    }
  };
  each_expr([&](Expr& expr) { expr.collect_symbols(used); });
  for (const plan::Step& step : plan_.steps)
    for (const plan::StepCount& count : step.counts) used.push_back(count.symbol);
  for (Constraint& constraint : constraints) {
    const std::vector<SymbolId> own = symbols_of(constraint);
    const bool is_known = std::all_of(own.begin(), own.end(), [&](SymbolId id) {
      return plan_.symbols[id].source != SymbolSource::computed ||
             std::find(used.begin(), used.end(), id) != used.end();
    });
    if (!is_known) continue;
    used.insert(used.end(), own.begin(), own.end());
    plan_.constraints.push_back(std::move(constraint));
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  std::vector<Expr> renamed(plan_.symbols.size());
  std::vector<Symbol> symbols;
  std::vector<plan::Profile> profiles(plan_.profiles.size());
  for (SymbolId id : used) {
    renamed[id] = Expr::symbol(static_cast<SymbolId>(symbols.size()));
    symbols.push_back(plan_.symbols[id]);
    for (size_t p = 0; p < profiles.size(); ++p) profiles[p].symbols.push_back(plan_.profiles[p].symbols[id]);
  }
  each_expr([&](Expr& expr) { expr = expr.substitute(renamed); });
  for (plan::Step& step : plan_.steps)
    for (plan::StepCount& count : step.counts) count.symbol = *renamed[count.symbol].as_symbol();
  plan_.symbols = std::move(symbols);
  plan_.profiles = std::move(profiles);
}

// Steps whose results nothing reads, such as the shapes that reshapes and expansions have as operands: their kernels
// take sizes from the plan. What finds the size of a result stays, for the plan's symbols depend on it.
void Emitter::drop_unread_steps() {
  const auto storage = [&](TensorId id) { return std::pair(plan_.tensors[id].storage, plan_.tensors[id].index); };
  std::set<std::pair<StorageKind, uint32_t>> read;
  std::vector<plan::Step> steps;
  std::vector<RegionReport> reports;
  for (size_t i = plan_.steps.size(); i-- > 0;) {
    plan::Step& step = plan_.steps[i];
    const bool is_read = std::any_of(step.outputs.begin(), step.outputs.end(), [&](TensorId id) {
      return id != plan::kNoTensor &&
             (plan_.tensors[id].storage == StorageKind::binding || read.contains(storage(id)) ||
              depends_on_data(plan_.tensors[id].dims, plan_.symbols));
    });
    if (!is_read && step.counts.empty()) continue;
    for (const TensorId id : step.inputs)
      if (id != plan::kNoTensor) read.insert(storage(id));
    steps.push_back(std::move(step));
    reports.push_back(std::move(out_.report.regions[i]));
  }
  plan_.steps.assign(std::make_move_iterator(steps.rbegin()), std::make_move_iterator(steps.rend()));
  out_.report.regions.assign(std::make_move_iterator(reports.rbegin()), std::make_move_iterator(reports.rend()));
}

// Lifetimes, symbols, shape inputs.
Result<> Emitter::finish() {
  drop_unread_steps();
  std::vector<bool> touched(plan_.buffers.size());
  for (uint32_t i = 0; i < plan_.steps.size(); ++i)
    for (const auto* list : {&plan_.steps[i].inputs, &plan_.steps[i].outputs})
      for (TensorId id : *list) {
        if (id == plan::kNoTensor || plan_.tensors[id].storage != StorageKind::arena) continue;
        plan::Buffer& buffer = plan_.buffers[plan_.tensors[id].index];
        if (!touched[plan_.tensors[id].index]) buffer.first = i;
        touched[plan_.tensors[id].index] = true;
        buffer.last = i;
      }
  drop_unused_symbols();
  for (const Symbol& symbol : plan_.symbols)
    if (symbol.source == SymbolSource::input_value) plan_.bindings[symbol.tensor].is_shape_tensor = true;
  plan_.weights = out_.weights;
  out_.report.weights_bytes = out_.weights.size();
  return {};
}

}  // namespace lathe
