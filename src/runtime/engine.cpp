// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <algorithm>

namespace lathe {

Result<std::shared_ptr<const Engine>> Engine::load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                   const EngineOptions& options) {
  std::shared_ptr<Engine> engine(new Engine);
  engine->bytes_ = bytes;
  engine->owner_ = owner;
  engine->device_ = options.device;
  LATHE_ASSIGN(engine->loaded_, plan::read_plan(bytes, std::move(owner), options.read));
  const plan::Plan& plan = engine->plan();
  if (!options.device) return engine;
  LATHE_TRY(options.device->check_target(plan.target));
  LATHE_ASSIGN(engine->weights_, options.device->make_resident(plan.weights, engine->loaded_.owner));
  for (const plan::Tensor& tensor : plan.tensors) engine->recordable_ &= !depends_on_data(tensor.dims, plan.symbols);
  engine->programs_.resize(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    LATHE_ASSIGN(StepCode code, engine->make_step(i));
    engine->recordable_ &= code.kernel != nullptr;
    engine->code_.push_back(std::move(code));
  }
  return engine;
}

Result<Engine::StepCode> Engine::make_step(size_t i) {
  const plan::Step& step = plan().steps[i];
  StepCode code;
  if (step.kernel == "eval") {
    const OpInfo* op = find_op(step.op);
    if (!op) return fail(ErrorCode::plan_malformed, "step '{}' evaluates the unknown op '{}'", step.name, step.op);
    LATHE_ASSIGN(code.eval, parse_attributes(op->kind, step.attributes));
    const auto is_tensor = [](const std::vector<plan::TensorId>& ids) {
      return ids.size() == 1 && ids[0] != plan::kNoTensor;
    };
    code.copies = op->kind == OpKind::identity && is_tensor(step.inputs) && is_tensor(step.outputs);
    if (code.copies) return code;
    for (const auto* ids : {&step.inputs, &step.outputs})
      for (const plan::TensorId id : *ids)
        if (id != plan::kNoTensor && !plan().tensors[id].strides.empty())
          return fail(ErrorCode::plan_malformed, "step '{}' evaluates an op on tensor '{}', which is not dense",
                      step.name, plan().tensors[id].name);
    return code;
  }
  if (!step.op.empty()) {
    const OpInfo* op = find_op(step.op);
    if (!op) return fail(ErrorCode::plan_malformed, "step '{}' is of the unknown op '{}'", step.name, step.op);
    LATHE_ASSIGN(code.eval, parse_attributes(op->kind, step.attributes));
  }
  StepRecord record{step.kernel, step.params, nullptr, step.launches, &step.workspace, plan().codes};
  if (!step.program.empty()) {
    LATHE_ASSIGN(programs_[i], parse_program(step.program));
    record.program = &programs_[i];
  }
  Result<std::unique_ptr<Kernel>> kernel = device_->make_kernel(record);
  if (!kernel) return fail(with_context(std::move(kernel).error(), fmt::format("step '{}'", step.name)));
  code.kernel = *std::move(kernel);
  return code;
}

bool Engine::is_late(plan::TensorId id) const {
  if (id == plan::kNoTensor) return false;
  const auto any_late = [&](const Shape& numbers) { return depends_on_data(numbers, plan().symbols); };
  const plan::Tensor& tensor = plan().tensors[id];
  if (tensor.storage == plan::StorageKind::dynamic) return true;
  if (any_late(tensor.dims) || any_late(tensor.strides) || is_late(tensor.offset)) return true;
  // A part of an output that is.
  return tensor.storage == plan::StorageKind::binding &&
         any_late(plan().tensors[plan().bindings[tensor.index].tensor].dims);
}

bool Engine::is_late(const Expr& number) const { return depends_on_data(number, plan().symbols); }

// An operand is, or a number of its own: a kernel may write such a size into a tensor whose size is known.
bool Engine::is_late(const plan::Step& step) const {
  for (const auto* ids : {&step.inputs, &step.outputs})
    for (const plan::TensorId id : *ids)
      if (is_late(id)) return true;
  for (const Launch& launch : step.launches) {
    for (const Expr& blocks : launch.grid)
      if (is_late(blocks)) return true;
    for (const LaunchArg& arg : launch.args)
      if (is_late(arg.value)) return true;
  }
  return is_late(step.workspace);
}

int Engine::find_binding(std::string_view name) const {
  for (size_t i = 0; i < plan().bindings.size(); ++i)
    if (plan().bindings[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace lathe
