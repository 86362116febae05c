// SPDX-License-Identifier: Apache-2.0
// Shapes and addresses of a context. Execution is in execute.cpp.
#include "runtime/context.h"

#include <algorithm>
#include <array>

#include "plan/memory_planner.h"
#include "plan/validate.h"

namespace lathe {
namespace {

bool reads_input(const plan::Plan& plan, const plan::Step& step) {
  return std::any_of(step.inputs.begin(), step.inputs.end(), [&](plan::TensorId id) {
    return id != plan::kNoTensor && plan.tensors[id].storage == plan::StorageKind::binding &&
           plan.bindings[plan.tensors[id].index].is_input;
  });
}

std::string dims_text(std::span<const int64_t> dims) { return to_string(to_shape(dims)); }

}  // namespace

Result<std::unique_ptr<Context>> Context::create(std::shared_ptr<const Engine> engine, MemoryPolicy policy) {
  std::unique_ptr<Context> context(new Context(std::move(engine), policy));
  for (size_t i = 0; i < context->plan_.bindings.size(); ++i) {
    const plan::Binding& binding = context->plan_.bindings[i];
    const std::optional<Dims> fixed = as_constant(context->plan_.tensors[binding.tensor].dims);
    if (binding.is_input && fixed) context->input_dims_[i] = *fixed;
  }
  if (auto* const maker = dynamic_cast<EventMaker*>(&context->engine_->device())) {
    LATHE_ASSIGN(context->done_, maker->make_event());
  }
  LATHE_TRY(context->reserve());
  return context;
}

Context::~Context() {
  (void)wait_for_work();  // its memory goes now
}

Context::Context(std::shared_ptr<const Engine> engine, MemoryPolicy policy)
    : engine_(std::move(engine)),
      plan_(engine_->plan()),
      policy_(policy),
      input_dims_(plan_.bindings.size()),
      addresses_(plan_.bindings.size()),
      allocators_(plan_.bindings.size()),
      symbols_(plan_.symbols.size(), Expr::kUnbound),
      steps_(plan_.steps.size()),
      dynamic_(plan_.dynamic_slots),
      slot_windows_(plan_.dynamic_slots),
      provided_(plan_.bindings.size()),
      staging_(plan_.bindings.size()) {
  for (plan::TensorId id = 0; id < plan_.tensors.size(); ++id)
    if (plan_.tensors[id].storage == plan::StorageKind::dynamic) slot_windows_[plan_.tensors[id].index].push_back(id);
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].inputs.resize(plan_.steps[i].inputs.size());
    steps_[i].outputs.resize(plan_.steps[i].outputs.size());
    steps_[i].late = engine_->is_late(plan_.steps[i]);
    if (reads_input(plan_, plan_.steps[i])) readers_end_ = i + 1;
  }
  for (uint32_t i = 0; i < plan_.constraints.size(); ++i) {
    const bool late = engine_->is_late(plan_.constraints[i].a) || engine_->is_late(plan_.constraints[i].b);
    (late ? late_constraints_ : early_constraints_).push_back(i);
  }
  due_.reserve(late_constraints_.size());  // running allocates nothing
}

Result<> Context::set_profile(size_t profile) {
  if (profile >= plan_.profiles.size())
    return fail(ErrorCode::invalid_argument, "profile {} does not exist: the engine has {}", profile,
                plan_.profiles.size());
  if (profile == profile_) return {};
  const size_t former = std::exchange(profile_, profile);
  if (policy_ == MemoryPolicy::by_profile)
    if (Result<> reserved = reserve(); !reserved) {
      profile_ = former;
      return reserved;
    }
  prepared_ = false;
  for (size_t i = 0; i < plan_.bindings.size(); ++i)
    if (!as_constant(plan_.tensors[plan_.bindings[i].tensor].dims)) input_dims_[i].reset();
  return {};
}

Result<> Context::set_input_dims(size_t i, std::span<const int64_t> dims) {
  if (i >= plan_.bindings.size() || !plan_.bindings[i].is_input)
    return fail(ErrorCode::binding_invalid, "tensor {} is not an input", i);
  const plan::Binding& binding = plan_.bindings[i];
  const Shape& declared = plan_.tensors[binding.tensor].dims;
  if (dims.size() != declared.size())
    return fail(ErrorCode::binding_invalid, "input '{}' has rank {}, got dims {}", binding.name, declared.size(),
                dims_text(dims));
  for (size_t d = 0; d < dims.size(); ++d) {
    const std::optional<int64_t> fixed = declared[d].as_constant();
    if (dims[d] < 0 || (fixed && *fixed != dims[d]))
      return fail(ErrorCode::binding_invalid, "input '{}': dimension {} must be {}, got {}", binding.name, d,
                  fixed ? std::to_string(*fixed) : "non-negative", dims[d]);
    const std::optional<SymbolId> symbol = declared[d].as_symbol();
    if (!symbol) continue;
    const plan::SymbolProfile& range = plan_.profiles[profile_].symbols[*symbol];
    if (dims[d] < range.min || dims[d] > range.max)
      return fail(ErrorCode::profile_range, "input '{}': dimension {} is {}, profile {} allows {} to {}", binding.name,
                  d, dims[d], profile_, range.min, range.max);
  }
  Dims wanted(dims.begin(), dims.end());
  if (input_dims_[i] == wanted) return {};
  input_dims_[i] = std::move(wanted);
  prepared_ = false;
  return {};
}

Result<> Context::set_address(size_t i, void* address) {
  if (i >= plan_.bindings.size()) return fail(ErrorCode::binding_invalid, "tensor {} does not exist", i);
  addresses_[i] = address;
  if (!address && plan_.bindings[i].is_shape_tensor) prepared_ = false;  // prepare() then says what is missing
  staging_[i].asked = nullptr;
  staging_[i].active = false;
  const bool reserves = policy_ == MemoryPolicy::largest && !engine_->device().is_host();
  const MemoryLimit* limit = reserves ? engine_->memory_limit(profile_) : nullptr;
  return limit && limit->bindings[i] ? stage(i, limit->bindings[i]) : Result<>();
}

Result<> Context::set_output_allocator(size_t i, OutputAllocator allocator) {
  if (i >= plan_.bindings.size() || plan_.bindings[i].is_input)
    return fail(ErrorCode::binding_invalid, "tensor {} is not an output", i);
  allocators_[i] = std::move(allocator);
  return {};
}

std::vector<std::string> Context::missing_shapes() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < plan_.bindings.size(); ++i) {
    const plan::Binding& binding = plan_.bindings[i];
    if (binding.is_input && (!input_dims_[i] || (binding.is_shape_tensor && !addresses_[i])))
      names.push_back(binding.name);
  }
  return names;
}

int64_t Context::dim(size_t i, size_t d) const {
  if (input_dims_[i]) return (*input_dims_[i])[d];
  const Expr& dim = plan_.tensors[plan_.bindings[i].tensor].dims[d];
  return prepared_ || dim.is_constant() ? dim.evaluate(symbols_).value_or(-1) : -1;
}

Dims Context::dims(size_t i) const {
  Dims dims(plan_.tensors[plan_.bindings[i].tensor].dims.size());
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = dim(i, d);
  return dims;
}

Dims Context::tensor_dims(plan::TensorId id) const {
  Dims dims;
  if (!prepared_) return dims;
  for (const Expr& dim : plan_.tensors[id].dims) dims.push_back(dim.evaluate(symbols_).value_or(-1));
  return dims;
}

size_t Context::bytes(size_t i) const {
  const plan::Tensor& tensor = plan_.tensors[plan_.bindings[i].tensor];
  std::array<int64_t, kMaxRank> dims;
  for (size_t d = 0; d < tensor.dims.size(); ++d) dims[d] = dim(i, d);
  const std::optional<int64_t> count = checked_volume({dims.data(), tensor.dims.size()});
  return count ? static_cast<size_t>(*count) * size_of(tensor.dtype) : 0;
}

// Binding shapes

Result<> Context::bind_symbol(SymbolId symbol, int64_t value, std::string_view what) {
  int64_t& bound = symbols_[symbol];
  if (bound == Expr::kUnbound) bound = value;
  if (bound != value)
    return fail(ErrorCode::binding_invalid,
                "{} is {}, but dimension '{}' is already {}: equal names mean equal dimensions", what, value,
                plan_.symbols[symbol].name, bound);
  return {};
}

Result<> Context::bind_input_dims() {
  if (const std::vector<std::string> missing = missing_shapes(); !missing.empty())
    return fail(ErrorCode::binding_missing,
                "input '{}' has no shape (or, for a shape input, no address): set it before running", missing[0]);
  for (size_t i = 0; i < plan_.bindings.size(); ++i) {
    if (!plan_.bindings[i].is_input) continue;
    const Shape& declared = plan_.tensors[plan_.bindings[i].tensor].dims;
    for (size_t d = 0; d < declared.size(); ++d)
      if (const std::optional<SymbolId> symbol = declared[d].as_symbol())
        LATHE_TRY(bind_symbol(*symbol, (*input_dims_[i])[d],
                              fmt::format("input '{}' dimension {}", plan_.bindings[i].name, d)));
  }
  return {};
}

// Reads the shape inputs. Their values are part of the shapes: a change makes prepare() run again.
Result<> Context::bind_input_values() {
  shape_values_.clear();
  for (SymbolId id = 0; id < plan_.symbols.size(); ++id) {
    const Symbol& symbol = plan_.symbols[id];
    if (symbol.source != SymbolSource::input_value) continue;
    const plan::Binding& binding = plan_.bindings[symbol.tensor];
    const Dims& dims = *input_dims_[symbol.tensor];
    const Tensor content = Tensor::view(plan_.tensors[binding.tensor].dtype, dims, addresses_[symbol.tensor], nullptr);
    if (symbol.index >= static_cast<uint64_t>(content.volume()))
      return fail(ErrorCode::binding_invalid, "shape input '{}' has {} elements, element {} is needed", binding.name,
                  content.volume(), symbol.index);
    const int64_t value = content.at(symbol.index);
    const plan::SymbolProfile& range = plan_.profiles[profile_].symbols[id];
    if (value < range.min || value > range.max)
      return fail(ErrorCode::profile_range, "shape input '{}': element {} is {}, profile {} allows {} to {}",
                  binding.name, symbol.index, value, profile_, range.min, range.max);
    LATHE_TRY(bind_symbol(id, value, fmt::format("shape input '{}' element {}", binding.name, symbol.index)));
    shape_values_.push_back(value);
  }
  return {};
}

Result<> Context::check_constraint(const Constraint& constraint) const {
  const std::optional<int64_t> a = constraint.a.evaluate(symbols_), b = constraint.b.evaluate(symbols_);
  if (a && b && holds(constraint.relation, *a, *b)) return {};
  std::vector<std::string> names;
  for (const Symbol& symbol : plan_.symbols) names.push_back(symbol.name);
  const auto text = [](std::optional<int64_t> value) { return value ? std::to_string(*value) : "no value"; };
  return fail(ErrorCode::shapes_inconsistent, "{} needs {}, but these shapes give {} and {}", constraint.where,
              to_string(constraint, names), text(a), text(b));
}

// Constraints on sizes that steps have computed are checked as soon as the last of them is known.
Result<> Context::check_due_constraints() {
  for (size_t i = due_.size(); i-- > 0;) {
    const Constraint& constraint = plan_.constraints[due_[i]];
    const std::vector<SymbolId> used = symbols_of(constraint);
    if (std::any_of(used.begin(), used.end(), [&](SymbolId id) { return symbols_[id] == Expr::kUnbound; })) continue;
    due_[i] = due_.back();
    due_.pop_back();
    LATHE_TRY(check_constraint(constraint));
  }
  return {};
}

Result<> Context::prepare() {
  if (prepared_) {  // shape inputs may have changed behind their addresses
    bool same = true;
    size_t k = 0;
    for (const Symbol& symbol : plan_.symbols)
      if (symbol.source == SymbolSource::input_value)
        same &= Tensor::view(plan_.tensors[plan_.bindings[symbol.tensor].tensor].dtype, *input_dims_[symbol.tensor],
                             addresses_[symbol.tensor], nullptr)
                    .at(symbol.index) == shape_values_[k++];
    if (same) return {};
    prepared_ = false;
  }
  symbols_.assign(symbols_.size(), Expr::kUnbound);
  LATHE_TRY(bind_input_dims());
  LATHE_TRY(bind_input_values());
  for (const uint32_t i : early_constraints_) LATHE_TRY(check_constraint(plan_.constraints[i]));
  LATHE_TRY(plan::check_windows(plan_, symbols_));
  LATHE_TRY(place_arena());
  workspace_bytes_ = 0;
  for (size_t i = 0; i < steps_.size(); ++i)
    if (!steps_[i].late) LATHE_TRY(prepare_step(i));
  recorded_.clear();  // a recording holds other sizes
  seen_.clear();
  prepared_ = true;
  return {};
}

Result<> Context::place_arena() {
  std::vector<plan::Lifetime> lifetimes;
  for (const plan::Buffer& buffer : plan_.buffers) {
    const std::optional<int64_t> bytes = buffer.bytes.evaluate(symbols_);
    if (!bytes || *bytes < 0) return fail(ErrorCode::shape_mismatch, "these shapes need a buffer of invalid size");
    lifetimes.push_back({static_cast<size_t>(*bytes), buffer.first, buffer.last});
  }
  size_t total = 0;
  offsets_ = plan::plan_memory(lifetimes, &total);
  arena_bytes_ = engine_->align(total);
  // Smaller buffers may happen to pack worse: never than the largest, for which there is room.
  const MemoryLimit* limit = policy_ == MemoryPolicy::on_demand ? nullptr : engine_->memory_limit(profile_);
  if (!limit || arena_bytes_ <= limit->arena) return {};
  offsets_ = limit->offsets;
  arena_bytes_ = limit->arena;
  return {};
}

Result<> Context::resolve(plan::TensorId id, TensorArg& arg) {
  arg = {};
  if (id == plan::kNoTensor) return {};
  const plan::Tensor& tensor = plan_.tensors[id];
  arg.dtype = tensor.dtype;
  arg.rank = static_cast<int>(tensor.dims.size());
  for (int d = 0; d < arg.rank; ++d) {
    const std::optional<int64_t> dim = tensor.dims[static_cast<size_t>(d)].evaluate(symbols_);
    if (!dim || *dim < 0)
      return fail(ErrorCode::shape_mismatch, "tensor '{}': dimension {} is {} for these input shapes", tensor.name, d,
                  dim ? std::to_string(*dim) : "undefined");
    arg.dims[d] = *dim;
  }
  int64_t dense = 1;
  for (int d = arg.rank; d-- > 0;) {
    if (tensor.strides.empty()) {
      arg.strides[d] = dense;
      dense *= arg.dims[d];
    } else {
      const std::optional<int64_t> stride = tensor.strides[static_cast<size_t>(d)].evaluate(symbols_);
      if (!stride) return fail(ErrorCode::internal, "tensor '{}': stride {} is undefined", tensor.name, d);
      arg.strides[d] = *stride;
    }
  }
  return {};
}

// Dims and strides of the operands, the kernel's consent, workspace. Addresses are filled in by run().
Result<> Context::prepare_step(size_t i) {
  const plan::Step& step = plan_.steps[i];
  StepState& state = steps_[i];
  for (size_t k = 0; k < step.inputs.size(); ++k) LATHE_TRY(resolve(step.inputs[k], state.inputs[k]));
  for (size_t k = 0; k < step.outputs.size(); ++k) LATHE_TRY(resolve(step.outputs[k], state.outputs[k]));
  const Kernel* kernel = engine_->code()[i].kernel.get();
  if (!kernel) return {};
  Result<size_t> workspace = kernel->prepare({state.inputs, state.outputs, symbols_}, engine_->device().threads());
  if (!workspace)
    return fail(with_context(std::move(workspace).error(), fmt::format("step '{}' ({})", step.name, step.kernel)));
  workspace_bytes_ = std::max(workspace_bytes_, *workspace);
  return {};
}

Result<size_t> Context::memory_bytes() {
  LATHE_TRY(prepare());
  return arena_bytes_ + engine_->align(workspace_bytes_);
}

Result<> Context::set_memory(void* memory, size_t bytes) {
  if (policy_ != MemoryPolicy::user)
    return fail(ErrorCode::invalid_state,
                "this context owns its memory: create it with user-managed memory to supply some");
  if (reinterpret_cast<uintptr_t>(memory) % engine_->alignment() != 0)
    return fail(ErrorCode::invalid_argument, "context memory at {} is not aligned to {} bytes", memory,
                engine_->alignment());
  if (memory && !engine_->device().is_accessible(memory))
    return fail(ErrorCode::invalid_argument, "context memory at {} is not memory of device {}", memory,
                engine_->device().name());
  if (!memory && bytes != 0) return fail(ErrorCode::invalid_argument, "{} bytes of context memory at null", bytes);
  if (memory != memory_) LATHE_TRY(wait_for_work());
  memory_ = static_cast<std::byte*>(memory);
  memory_size_ = bytes;
  return {};
}

}  // namespace lathe
