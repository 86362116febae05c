// SPDX-License-Identifier: Apache-2.0
// The steps of a plan, one kind of region each.
#include <algorithm>

#include "build/emitter.h"
#include "build/step_cost.h"
#include "ops/rules.h"

namespace lathe {

using ir::Node;
using ir::Value;
using plan::TensorId;

namespace {

std::string name_of_region(const Region& region) {
  std::string name;
  for (const Node* node : region.nodes) {
    if (name.size() > 120) return name + " + ...";
    name += (name.empty() ? "" : " + ") + node->name();
  }
  return name;
}

std::vector<std::string> origin_of(const Region& region) {
  std::vector<std::string> origin;
  for (const Node* node : region.nodes)
    for (const std::string& name : node->origin())
      if (std::find(origin.begin(), origin.end(), name) == origin.end()) origin.push_back(name);
  return origin;
}

}  // namespace

Result<> Emitter::emit(const Region& region) {
  if (placement_.is_free(region)) return {};
  switch (region.kind) {
    case RegionKind::kernel:
    case RegionKind::pointwise:
      return emit_kernel(region);
    case RegionKind::movement:
      return emit_movement(region);
    case RegionKind::view:
      return emit_view(region);
    case RegionKind::eval:
      return emit_alone(*region.root);
  }
  return {};
}

void Emitter::add_step(plan::Step step, std::string kind, const Choice& choice) {
  const auto dims_of = [&](const std::vector<TensorId>& tensors) {
    std::vector<Dims> dims;
    for (const TensorId id : tensors)
      dims.push_back(id == plan::kNoTensor ? Dims{0} : at_optimum(plan_.tensors[id].dims));
    return dims;
  };
  const double estimate = estimated_microseconds(step, dims_of(step.inputs), dims_of(step.outputs));
  out_.report.regions.push_back({step.name, std::move(kind), step.origin, step.tactic, step.milliseconds * 1000,
                                 estimate, step.op, choice.refusals, choice.finalists});
  plan_.steps.push_back(std::move(step));
}

// An input of the root the way its kernel reads it: its placed tensor, in another order perhaps, or the channels-last
// copy that problem_of() asked for.
TensorId Emitter::as_read(const Region& region, size_t input, const Operand& operand, bool transposed) {
  const Value* value = region.input(input);
  const bool is_moved = region.reading_of(input) != nullptr;
  const auto copy = channels_last_.find(value);
  const bool is_copied = !is_moved && copy != channels_last_.end() && operand.strides[1] == Expr(1);
  const TensorId id = is_copied ? copy->second : is_moved ? tensor_along(value, operand) : tensor_of(value);
  if (!transposed) return id;
  plan::Tensor tensor = plan_.tensors[id];
  tensor.strides = strides_of(tensor);
  const size_t last = tensor.dims.size() - 1;
  std::swap(tensor.dims[last], tensor.dims[last - 1]);
  std::swap(tensor.strides[last], tensor.strides[last - 1]);
  return add_tensor(std::move(tensor));
}

// The placed tensor with the operand's dims, or the excerpt of it that the operand is.
TensorId Emitter::tensor_along(const Value* value, const Operand& operand) {
  plan::Tensor tensor = plan_.tensors[tensor_of(value)];
  tensor.dims = operand.dims;
  tensor.strides = operand.strides;
  tensor.offset = operand.offset;
  return add_tensor(std::move(tensor));
}

Result<> Emitter::emit_kernel(const Region& region) {
  if (region.kind == RegionKind::kernel && wants_channels_last(region)) {
    const Value* x = region.input(0);
    if (!channels_last_.contains(x)) {
      const Shape room = pixel_dims(x);
      plan::Tensor copy = plan_.tensors[temporary(x->name(), x->dtype(), room)];
      plan_.tensors.pop_back();
      copy.dims = x->shape();
      copy.strides = dense_strides(room, Layout::channels_last);
      channels_last_[x] = add_tensor(std::move(copy));
      LATHE_TRY(emit_copy(tensor_of(x), channels_last_[x], "reformat " + x->name(), {}));
    }
  }
  LATHE_ASSIGN(Choice choice, emit_choice(region));
  if (choice.tactic) return {};
  if (!region.absorbed.empty()) {
    LATHE_TRY(emit_kernel(region.absorbed.back()));
    return emit_kernel(without_last_absorbed(region));
  }
  if (!region.apart.empty()) {
    for (const Region& part : region.apart) LATHE_TRY(emit_kernel(part));
    return {};
  }
  const size_t first = out_.report.regions.size();
  if (std::optional<Region> epilogue = epilogue_alone(region)) {
    LATHE_TRY(emit_alone(*region.root));
    LATHE_TRY(emit_kernel(*epilogue));
  } else {
    for (Node* node : region.nodes) LATHE_TRY(emit_alone(*node));
  }
  note_refusals(first, choice.refusals);
  return {};
}

// Why plain evaluations from the region with that number on are no kernels.
void Emitter::note_refusals(size_t first, const std::vector<std::string>& refusals) {
  for (size_t i = first; i < out_.report.regions.size(); ++i) {
    RegionReport& region = out_.report.regions[i];
    if (region.kind == "eval") region.refusals.insert(region.refusals.end(), refusals.begin(), refusals.end());
  }
}

// One node by a tactic that takes it, by copies, or by its plain evaluation.
Result<> Emitter::emit_alone(Node& node) {
  const Region region = region_alone(node);
  if (tactics_.empty() || node.num_inputs() == 0) return emit_eval(node);
  std::vector<std::string> refusals;
  LATHE_ASSIGN(const bool counted, emit_counted(region, refusals));
  if (counted) return {};
  LATHE_ASSIGN(const Choice choice, emit_choice(region));
  if (choice.tactic) return {};
  const size_t first = out_.report.regions.size();
  LATHE_ASSIGN(const bool copied,
               introduces_symbols(region, graph_) ? Result<bool>(false) : emit_copies(node, Copies::any));
  if (copied) return {};
  LATHE_TRY(emit_eval(node));
  note_refusals(first, refusals);
  return {};
}

Result<Choice> Emitter::choose(const Problem& problem) {
  if (mode_ == Mode::survey) return tuner_.foresee(problem, tactics_);
  return tuner_.choose(problem, tactics_);
}

// The step of the tactic that the tuner chooses, if any takes the region. Sizes that depend on data are the plain
// evaluation's to find.
Result<Choice> Emitter::emit_choice(const Region& region) {
  if (introduces_symbols(region, graph_)) {
    Choice none;
    none.refusals = {"the result's size depends on data"};
    return none;
  }
  const Problem problem = problem_of(region);
  LATHE_ASSIGN(Choice choice, choose(problem));
  if (!choice.tactic || mode_ == Mode::survey) return choice;
  LATHE_ASSIGN(Emission emission, choice.tactic->emit(problem, choice.config));
  plan::Step step;
  LATHE_TRY(describe_kernel(problem, choice, emission, step));
  step.name = name_of_region(region);
  step.origin = origin_of(region);
  std::vector<const Value*> before;
  for (const Region::Prologue& prologue : region.prologues)
    before.insert(before.end(), prologue.operands.begin(), prologue.operands.end());
  for (const StepInput& input : emission.inputs) {
    if (input.kind == StepInput::packed) {
      step.inputs.push_back(constant_of(emission.packed[input.index]));
    } else if (input.kind == StepInput::input) {
      step.inputs.push_back(region.input(input.index)
                                ? as_read(region, input.index, problem.inputs[input.index], input.transposed)
                                : plan::kNoTensor);
    } else {
      const bool is_before = input.kind == StepInput::prologue;
      const Value* value = is_before ? before[input.index] : region.operands[input.index];
      const Operand& operand = (is_before ? problem.prologue_operands : problem.operands)[input.index];
      step.inputs.push_back(tensor_along(value, operand));
    }
  }
  for (const Value* output : region.outputs)  // of a region that moves elements in the order of its space
    step.outputs.push_back(region.arrangement ? tensor_along(output, problem.outputs[0]) : tensor_of(output));
  add_step(std::move(step), region.kind == RegionKind::pointwise ? "pointwise" : "kernel", choice);
  return choice;
}

// What a chosen tactic says of its step: kernel, parameters, program, device code.
Result<> Emitter::describe_kernel(const Problem& problem, const Choice& choice, const Emission& emission,
                                  plan::Step& step) {
  step.kernel = emission.kernel.empty() ? std::string(choice.tactic->name()) : emission.kernel;
  step.params = emission.params;
  if (emission.with_program && !(problem.attributes && problem.program.is_identity()))
    step.program = to_text(problem.program);
  step.tactic = describe(*choice.tactic, choice.config);
  step.milliseconds = static_cast<float>(choice.microseconds / 1000);
  return describe_code(emission, step);
}

Result<> Emitter::describe_code(const Emission& emission, plan::Step& step) {
  step.workspace = emission.workspace;
  LATHE_ASSIGN(StepModules modules, modules_of(emission, tuner_.modules()));
  for (Launch& launch : modules.launches) {
    if (!launch.library.empty()) {
      step.launches.push_back(std::move(launch));
      continue;
    }
    const Modules::Module& module = modules.modules[launch.code];
    const auto it = std::find(out_.modules.begin(), out_.modules.end(), module);
    launch.code = static_cast<uint32_t>(it - out_.modules.begin());
    if (it == out_.modules.end()) {
      out_.modules.push_back(module);
      plan_.codes.emplace_back(*module);
    }
    step.launches.push_back(std::move(launch));
  }
  return {};
}

Operand Emitter::operand_at(const plan::Tensor& tensor) const {
  Operand operand;
  operand.dtype = tensor.dtype;
  operand.dims = tensor.dims;
  operand.strides = strides_of(tensor);
  operand.opt_dims = at_optimum(operand.dims);
  operand.opt_strides = at_optimum(operand.strides);
  operand.offset = tensor.offset;
  return operand;
}

// A copy is the pointwise region that computes nothing.
Result<> Emitter::emit_copy(TensorId from, TensorId to, std::string name, const std::vector<std::string>& origin) {
  plan::Step step;
  step.name = std::move(name);
  step.origin = origin;
  step.inputs = {from};
  step.outputs = {to};
  if (tactics_.empty()) {  // a plan by plain evaluations keeps every tensor dense
    step.kernel = "eval";
    step.op = "identity";
  } else {
    Problem problem;
    problem.operands = {operand_at(plan_.tensors[from])};
    problem.outputs = {operand_at(plan_.tensors[to])};
    problem.program = {1, {}, {0}};
    problem.symbols = optimum_;
    LATHE_ASSIGN(const Choice choice, choose(problem));
    if (mode_ == Mode::survey) return {};
    if (!choice.tactic) {
      step.kernel = "eval";
      step.op = "identity";
      step.tactic = "plain evaluation";
      add_step(std::move(step), "eval", choice);
      return {};
    }
    LATHE_ASSIGN(const Emission emission, choice.tactic->emit(problem, choice.config));
    LATHE_TRY(describe_kernel(problem, choice, emission, step));
  }
  add_step(std::move(step), "copy");
  return {};
}

Result<> Emitter::emit_eval(const Node& node) {
  plan::Step step;
  step.kernel = "eval";
  step.op = node.info().name;
  step.attributes = to_text(node.attributes());
  step.name = node.name();
  step.origin = node.origin();
  step.tactic = "plain evaluation";
  for (const Value* input : node.inputs()) {
    if (!input) {
      step.inputs.push_back(plan::kNoTensor);
      continue;
    }
    LATHE_ASSIGN(TensorId id, dense_of(input));
    step.inputs.push_back(id);
  }
  std::vector<std::pair<TensorId, const Value*>> moves;
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    const Value* output = node.output(i);
    if (placement_.is_dense_linear(output) && !placement_.is_over_operand(output)) {
      step.outputs.push_back(tensor_of(output));
    } else {
      step.outputs.push_back(temporary(output->name(), output->dtype(), output->shape()));
      moves.emplace_back(step.outputs.back(), output);
    }
  }
  add_step(std::move(step), "eval");
  for (const auto& [from, output] : moves)
    LATHE_TRY(emit_copy(from, tensor_of(output), "reformat " + output->name(), {}));
  return {};
}

Result<> Emitter::emit_outputs() {
  const auto inputs = static_cast<uint32_t>(graph_.inputs().size());
  for (uint32_t i = 0; i < graph_.outputs().size(); ++i) {
    const auto& [name, value] = graph_.outputs()[i];
    TensorId target;
    if (outputs_written_[i]) {
      target = tensor_of(value);
    } else {
      target = add_tensor({name, value->dtype(), value->shape(), {}, plan::StorageKind::binding, inputs + i, 0});
      LATHE_TRY(emit_copy(tensor_of(value), target, "output " + name, {}));
    }
    plan::Binding binding{name, false, target, false, std::vector<std::string>(value->shape().size())};
    plan_.bindings.push_back(std::move(binding));
  }
  return {};
}

}  // namespace lathe
