// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "base/for_each_in_threads.h"
#include "base/packed_code.h"
#include "device/family.h"
#include "ops/plugin.h"
#include "plan/expressions.h"
#include "plan/writer.h"

namespace lathe {
namespace {

constexpr uint32_t kMostThreads = 4096;  // that a plan is believed to be tuned for

}  // namespace

Result<std::shared_ptr<const Engine>> Engine::load(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                   const EngineOptions& options) {
  std::shared_ptr<Engine> engine(new Engine);
  engine->bytes_ = bytes;
  engine->owner_ = owner;
  engine->device_ = options.device;
  plan::ReadOptions read = options.read;
  read.borrows_weights |= !owner && options.device && !options.device->is_host();
  LATHE_ASSIGN(engine->loaded_, plan::read_plan(bytes, std::move(owner), read));
  const plan::Plan& plan = engine->plan();
  engine->threads_ =
      options.threads > 0 ? options.threads : static_cast<int>(std::clamp(plan.threads, 1u, kMostThreads));
  for (const plan::TensorDesc& tensor : plan.tensors)
    engine->data_dependent_.push_back(engine->find_data_dependence(tensor));
  if (const DeviceFamily* family = find_family(plan.target)) engine->alignment_ = family->memory_alignment();
  LATHE_ASSIGN(engine->places_, plan::find_places(plan.steps));
  engine->find_data_dependent_steps();
  if (!options.device) return engine;
  LATHE_TRY(options.device->check_target(plan.target));
  LATHE_TRY(engine->place_weights());
  LATHE_TRY(engine->check_values());
  LATHE_TRY(engine->choose_codes());
  engine->block_symbols_ = plan::find_block_symbols(plan);
  engine->conditional_steps_ = plan::find_conditional_steps(plan);
  engine->conditional_tensors_ = plan::find_conditional_tensors(plan);
  for (const plan::TensorDesc& tensor : plan.tensors)
    engine->capturable_ &= !depends_on_data(tensor.dims, plan.symbols);
  LATHE_TRY(engine->make_steps(options));
  if (engine->has_kernels_) {  // no kernel is made of the code again
    engine->compiled_.clear();
    engine->module_bytes_.clear();
  }
  engine->specializer_ = Specializer::create(
      plan, *engine->device_, [own = engine.get()](size_t step) { return own->code_[step].kernel.get(); });
  return engine;
}

// What the host may read of a device's weights stays with it: trip counts, say.
constexpr size_t kSmall = 4096;

Result<> Engine::place_weights() {
  if (plan().refit.kind != plan::RefitKind::none) {
    LATHE_ASSIGN(refittable_, Refittable::create(plan(), device_));
    LATHE_ASSIGN(amendments_, plan::read_amendments(bytes_));
  } else if (owner_ || device_->is_host()) {
    LATHE_ASSIGN(weights_, device_->make_resident(plan().weights, loaded_.owner));
  }
  if (owner_ || device_->is_host()) return {};
  LATHE_ASSIGN(file_, PlanFile::without_weights(bytes_));
  plan::Plan& plan = loaded_.plan;
  if (!refittable_ && plan.streams_weights()) {
    LATHE_ASSIGN(streamed_, StreamedWeights::create(plan, places_, device_));
  }
  if (!refittable_ && !streamed_) {
    LATHE_ASSIGN(weights_, device_->make_resident(plan.weights, nullptr));
  }
  for (const plan::Constant& constant : plan.constants) {
    plan::WeightsPiece& piece = plan.pieces.emplace_back();
    if (constant.bytes > kSmall || constant.derived > 0) continue;
    const auto bytes = plan.weights.subspan(constant.offset, constant.bytes);
    const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    piece = {*copy, copy};
  }
  plan.pieces_bytes = plan.weights.size();
  plan.weights = {};
  bytes_ = {};
  return {};
}

const std::byte* Engine::host_constant(uint32_t index) const {
  if (plan().constants[index].derived > 0) return device_->is_host() ? constant(index) : nullptr;
  if (!plan().pieces.empty()) return plan().pieces[index].bytes.data();
  return plan().weights.data() + plan().constants[index].offset;
}

Result<std::vector<std::byte>> Engine::serialize(Refits refits, WeightsOf weights) const {
  if (refittable_) return write_anew(refits, weights);
  if (owner_) return std::vector(bytes_.begin(), bytes_.end());
  LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device_->make_queue());
  return file_.with_weights([&](std::span<std::byte> bytes) -> Result<> {
    if (streamed_) {
      std::ranges::copy(streamed_->all_on_host(), bytes.begin());
      return {};
    }
    return device_->download(bytes.data(), weights_.get(), bytes.size(), *queue);
  });
}

Result<std::vector<std::byte>> Engine::write_anew(Refits refits, WeightsOf weights) const {
  const RefitGate::Lease lease = refittable_->hold();
  if (refits == Refits::left_out && !refittable_->is_complete())
    return fail(ErrorCode::invalid_state,
                "the engine lacks weights, so that a plan of it which cannot be refitted would never run: refit it "
                "first, or set SerializationFlag::kINCLUDE_REFIT");
  plan::Plan copy = plan();
  copy.weights = {};
  copy.detached.reset();
  copy.weights_file.clear();
  copy.pieces.assign(copy.constants.size(), {});
  copy.pieces_bytes = 0;
  for (uint32_t i = 0; i < copy.constants.size(); ++i) {
    plan::Constant& constant = copy.constants[i];
    const bool is_left_out = constant.derived > 0 && weights == WeightsOf::that_stay;
    auto bytes = std::make_shared<std::vector<std::byte>>();
    if (!is_left_out) {
      LATHE_ASSIGN(*bytes, refittable_->read(i));
    }
    constant.stripped = is_left_out || (constant.bytes > 0 && bytes->empty());
    constant.digest = constant.stripped ? Digest() : digest_of(*bytes);
    constant.offset = constant.stripped ? 0 : round_up(copy.pieces_bytes, uint64_t{64});
    if (constant.stripped) continue;
    copy.pieces[i] = {*bytes, bytes};
    copy.pieces_bytes = constant.offset + constant.bytes;
  }
  if (refits == Refits::left_out && weights == WeightsOf::all) {
    copy.refit = {};
    for (plan::Constant& constant : copy.constants) constant.derived = 0;
  }
  return plan::write_plan(std::move(copy), amendments_);
}

Result<> Engine::check_values() const {
  for (const plan::TensorDesc& tensor : plan().tensors)
    if (tensor.kind != plan::ValueKind::tensor)
      return fail(ErrorCode::plan_version, "value '{}' is a sequence or an optional, which Lathe {} does not hold",
                  tensor.name, library_version().to_string());
  return {};
}

Result<> Engine::make_evaluation(const plan::Step& step, StepCode& code) const {
  const OpInfo* op = find_op(step.op);
  if (!op) return fail(ErrorCode::plan_malformed, "step '{}' is of the unknown op '{}'", step.name, step.op);
  LATHE_TRY(have_packed_code());
  LATHE_ASSIGN(code.eval, parse_attributes(op->kind, step.attributes));
  return {};
}

Result<> Engine::make_plugin(const plan::Step& step, const EngineOptions& options, StepCode& code) const {
  const auto* attrs = dynamic_cast<const PluginAttrs*>(code.eval.get());
  if (!attrs || attrs->data_inputs != static_cast<int64_t>(step.inputs.size()) ||
      !std::in_range<int32_t>(attrs->tactic) || attrs->workspace < 0)
    return fail(ErrorCode::plan_malformed, "step '{}' calls a plugin with other inputs than it has", step.name);
  LATHE_ASSIGN(const PluginResults results, parse_plugin_results(*attrs));
  if (results.types.size() != step.outputs.size())
    return fail(ErrorCode::plan_malformed, "step '{}' calls a plugin of {} results for {}", step.name,
                results.types.size(), step.outputs.size());
  for (const auto* ids : {&step.inputs, &step.outputs})
    for (const plan::TensorId id : *ids)
      if (id == plan::kNoTensor || !plan().tensors[id].strides.empty())
        return fail(ErrorCode::plan_malformed, "step '{}' gives a plugin a tensor that is not dense", step.name);
  LATHE_ASSIGN(const PluginFormats formats, parse_plugin_formats(*attrs, step.outputs.size()));
  for (size_t i = 0; i < formats.size(); ++i) {
    const size_t inputs = step.inputs.size();
    const plan::TensorDesc& tensor = plan().tensors[i < inputs ? step.inputs[i] : step.outputs[i - inputs]];
    if (formats[i] && tensor.dims.size() != formats[i]->rank_in_memory())
      return fail(ErrorCode::plan_malformed, "step '{}' gives a plugin a tensor of {} dimensions in format {}",
                  step.name, tensor.dims.size(), formats[i]->to_text());
  }
  if (!options.plugins)
    return fail(ErrorCode::plan_target, "step '{}' calls plugin '{}', and the engine is loaded without a registry",
                step.name, attrs->name);
  LATHE_ASSIGN(code.plugin,
               options.plugins->make({step.name, attrs->name, attrs->version, attrs->space, attrs->fields.raw(),
                                      static_cast<int32_t>(attrs->tactic), device_->is_host()}));
  return {};
}

// Those of the host's kernels by several threads: what they make of weights takes time. Plugins are the application's.
Result<> Engine::make_steps(const EngineOptions& options) {
  programs_.resize(plan().steps.size());
  code_.resize(plan().steps.size());
  std::vector<size_t> together;
  for (size_t i = 0; i < code_.size(); ++i) {
    if (options.loading_threads > 1 && plan().steps[i].is<plan::HostKernel>()) {
      together.push_back(i);
      continue;
    }
    LATHE_ASSIGN(code_[i], make_step(i, options));
  }
  LATHE_TRY(make_steps_together(together, options));
  for (size_t i = 0; i < code_.size(); ++i) {
    const bool runs_kernel = code_[i].kernel || plan().steps[i].is<plan::DeviceLaunches>();
    capturable_ &= runs_kernel || code_[i].plugin || is_capturable(plan().steps[i]);
  }
  return {};
}

// Of several errors, that of the first step is told, as if one thread had made them.
Result<> Engine::make_steps_together(const std::vector<size_t>& steps, const EngineOptions& options) {
  std::vector<std::optional<Error>> errors(steps.size());
  std::atomic<bool> is_out_of_memory = false;
  for_each_in_threads(steps.size(), options.loading_threads, [&](size_t i, size_t) noexcept {
    try {
      Result<StepCode> code = make_step(steps[i], options);
      code ? void(code_[steps[i]] = *std::move(code)) : void(errors[i] = std::move(code).error());
    } catch (const std::bad_alloc&) {
      is_out_of_memory = true;
    }
  });
  if (is_out_of_memory) return fail(ErrorCode::out_of_memory, "no memory for the engine's kernels");
  for (std::optional<Error>& error : errors)
    if (error) return fail(*std::move(error));
  return {};
}

Result<Engine::StepCode> Engine::make_step(size_t i, const EngineOptions& options) {
  const plan::Step& step = plan().steps[i];
  StepCode code;
  if (!step.op.empty()) LATHE_TRY(make_evaluation(step, code));
  if (step.is<plan::Copy>() || step.is<plan::Block>()) return code;
  if (step.is<plan::PluginCall>()) {
    LATHE_TRY(make_plugin(step, options, code));
    return code;
  }
  if (step.is<plan::Evaluation>()) {
    for (const auto* ids : {&step.inputs, &step.outputs})
      for (const plan::TensorId id : *ids)
        if (id != plan::kNoTensor && !plan().tensors[id].strides.empty())
          return fail(ErrorCode::plan_malformed, "step '{}' evaluates an op on tensor '{}', which is not dense",
                      step.name, plan().tensors[id].name);
    return code;
  }
  if (const auto* host = std::get_if<plan::HostKernel>(&step.work)) {
    if (!host->program.empty()) {
      LATHE_ASSIGN(programs_[i], parse_program(host->program));
    }
  } else if (!has_kernels_) {
    return code;
  }
  LATHE_ASSIGN(code.kernel, make_kernel(i));
  if (auto* taker = dynamic_cast<TakesConstants*>(code.kernel.get())) LATHE_TRY(give_constants(step, *taker));
  return code;
}

// Dense ones within their bytes; those that a refit may replace are none.
Result<> Engine::give_constants(const plan::Step& step, TakesConstants& taker) const {
  std::vector<TensorArg> inputs;
  for (const plan::TensorId id : step.inputs) {
    TensorArg& arg = inputs.emplace_back();
    if (id == plan::kNoTensor || plan().tensors[id].storage != plan::StorageKind::constant) continue;
    const plan::TensorDesc& tensor = plan().tensors[id];
    const plan::Constant& constant = plan().constants[tensor.index];
    const std::optional<Dims> dims = as_constant(tensor.dims);
    const std::optional<int64_t> bytes =
        dims ? bytes_of(tensor.dtype, checked_volume(*dims).value_or(-1)) : std::nullopt;
    if (!bytes || *bytes > static_cast<int64_t>(constant.bytes) || !tensor.strides.empty() ||
        tensor.offset != Expr(0) || constant.derived > 0)
      continue;
    arg.dtype = tensor.dtype;
    arg.rank = static_cast<int>(dims->size());
    std::ranges::copy(*dims, arg.dims);
    std::ranges::copy(row_major_strides(*dims), arg.strides);
    arg.data = const_cast<std::byte*>(this->constant(tensor.index));
  }
  Result<> taken = taker.take_constants(inputs, *device_);
  if (!taken) return fail(with_context(std::move(taken).error(), fmt::format("step '{}'", step.name)));
  return {};
}

Result<std::unique_ptr<Kernel>> Engine::make_kernel(size_t i) const {
  const plan::Step& step = plan().steps[i];
  StepRecord record;
  record.kernel = step.kernel();
  if (const auto* host = std::get_if<plan::HostKernel>(&step.work)) {
    record.params = host->params;
    if (!host->program.empty()) record.program = &programs_[i];
  } else {
    const auto& device = std::get<plan::DeviceLaunches>(step.work);
    record.launches = device.launches;
    record.workspace = &device.workspace;
    record.code = module_bytes_;
  }
  Result<std::unique_ptr<Kernel>> kernel = device_->make_kernel(record);
  if (!kernel) return fail(with_context(std::move(kernel).error(), fmt::format("step '{}'", step.name)));
  return kernel;
}

// A block whose bodies run as often as sizes and constants say.
bool Engine::is_capturable(const plan::Step& step) const {
  const auto* block = std::get_if<plan::Block>(&step.work);
  if (!block || block->kind == plan::BlockKind::branch) return false;
  if (block->kind == plan::BlockKind::call) return true;
  const auto is_known = [&](plan::TensorId id) {
    return id == plan::kNoTensor || plan().tensors[id].storage == plan::StorageKind::constant;
  };
  return is_known(step.inputs[0]) && is_known(step.inputs[1]) && is_known(block->bodies[0].results[0]);
}

bool Engine::find_data_dependence(const plan::TensorDesc& tensor) const {
  const auto depends = [&](const Shape& numbers) { return depends_on_data(numbers, plan().symbols); };
  if (tensor.storage == plan::StorageKind::dynamic) return true;
  if (depends(tensor.dims) || depends(tensor.strides) || is_data_dependent(tensor.offset)) return true;
  // A part of an output that is.
  return tensor.storage == plan::StorageKind::binding &&
         depends(plan().tensors[plan().bindings[tensor.index].tensor].dims);
}

// An operand is, or a number of its own: a kernel may write such a size into a tensor whose size is known.
void Engine::find_data_dependent_steps() {
  data_dependent_steps_.clear();
  for (const plan::Step& step : plan().steps) {
    bool any = false;
    for (const auto* ids : {&step.inputs, &step.outputs})
      for (const plan::TensorId id : *ids) any |= is_data_dependent(id);
    plan::for_each_expression_of(step, [&](const Expr& number, plan::ExprUse) { any |= is_data_dependent(number); });
    data_dependent_steps_.push_back(any);
  }
}

int Engine::find_binding(std::string_view name) const {
  for (size_t i = 0; i < plan().bindings.size(); ++i)
    if (plan().bindings[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace lathe
