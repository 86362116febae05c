// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_limit.h"

#include "device/family.h"
#include "plan/step_scratch.h"
#include "runtime/engine.h"

namespace lathe {
namespace {

// Sizes that only a run can tell may have limits far above what comes: up to so many bytes are set aside.
constexpr size_t kMostSetAside = size_t{256} << 20;

class Limiter {
 public:
  Limiter(const Engine& engine, size_t profile)
      : engine_(engine),
        plan_(engine.plan()),
        profile_(profile),
        ranges_(plan::ranges_of(plan_.profiles[profile])),
        largest_(ranges_.size()) {
    for (size_t i = 0; i < ranges_.size(); ++i) largest_[i] = ranges_[i].max;
  }

  std::optional<MemoryLimit> find() {
    MemoryLimit limit;
    if (!find_arena(limit)) return std::nullopt;
    limit.dynamic.resize(plan_.dynamic_slots);
    limit.bindings.resize(plan_.bindings.size());
    for (const plan::TensorDesc& tensor : plan_.tensors) {
      std::vector<size_t>* sizes = tensor.storage == plan::StorageKind::dynamic   ? &limit.dynamic
                                   : tensor.storage == plan::StorageKind::binding ? &limit.bindings
                                                                                  : nullptr;
      if (!sizes) continue;
      size_t& most = (*sizes)[tensor.index];
      most = std::max(most, bytes_of(tensor));
    }
    return limit;
  }

 private:
  bool find_arena(MemoryLimit& limit) const {
    const std::optional<plan::Arena> activations = plan::largest_arena(plan_, profile_);
    std::vector<size_t> bytes;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const std::optional<size_t> workspace = workspace_of(i);
      if (!workspace) return false;
      bytes.push_back(*workspace);
    }
    limit.scratch = plan::StepScratch(plan_).lifetimes(bytes);
    std::optional<plan::Arena> arena = plan::largest_arena(plan_, profile_, limit.scratch, engine_.alignment());
    if (!activations || !arena) return false;
    limit.activations = engine_.align(activations->bytes);
    limit.most_scratch = plan::max_live_bytes(limit.scratch, engine_.alignment());
    limit.arena = std::move(*arena);
    limit.arena.bytes = engine_.align(limit.arena.bytes);
    return true;
  }

  std::optional<int64_t> largest(const Expr& expr) const { return plan::largest(expr, ranges_); }

  size_t bytes_of(const plan::TensorDesc& tensor) const {
    const std::optional<TensorArg> arg = operand(tensor);
    const std::optional<int64_t> offset = largest(tensor.offset);
    if (!arg || !offset) return 0;
    int64_t end = *offset + 1;  // elements up to the last one
    for (int d = 0; d < arg->rank; ++d) {
      int64_t reach = 0;
      if (arg->dims[d] == 0) return 0;
      if (__builtin_mul_overflow(arg->dims[d] - 1, arg->strides[d], &reach) || __builtin_add_overflow(end, reach, &end))
        return 0;
    }
    const auto bytes = static_cast<size_t>(lathe::bytes_of(tensor.dtype, end).value_or(0));
    return bytes > kMostSetAside ? 0 : bytes;
  }

  // Each dimension and stride at its largest: what kernels ask for does not grow when operands shrink.
  std::optional<TensorArg> operand(plan::TensorId id) const {
    return id == plan::kNoTensor ? TensorArg() : operand(plan_.tensors[id]);
  }

  std::optional<TensorArg> operand(const plan::TensorDesc& tensor) const {
    TensorArg arg;
    arg.dtype = tensor.dtype;
    arg.rank = static_cast<int>(tensor.dims.size());
    int64_t dense = 1;
    for (int d = arg.rank; d-- > 0;) {
      const auto i = static_cast<size_t>(d);
      const std::optional<int64_t> dim = largest(tensor.dims[i]);
      if (!dim) return std::nullopt;
      arg.dims[d] = *dim;
      const std::optional<int64_t> stride = tensor.strides.empty() ? dense : largest(tensor.strides[i]);
      if (!stride || __builtin_mul_overflow(dense, *dim, &dense)) return std::nullopt;
      arg.strides[d] = *stride;
    }
    return arg;
  }

  std::optional<size_t> workspace_of(size_t i) const {
    const std::optional<size_t> bytes = prepared_workspace(i);
    if (!engine_.is_data_dependent_step(i)) return bytes;
    return bytes.value_or(SIZE_MAX) > kMostSetAside ? 0 : bytes;
  }

  static Program program_of(const plan::Step& step) {
    return step.program().empty() ? Program() : parse_program(step.program()).value_or(Program());
  }

  // Of an engine without a device. Null where the library has no such kernel: it is of another version.
  std::unique_ptr<Kernel> make_kernel(const plan::Step& step, const Program& program) const {
    const auto* host = std::get_if<plan::HostKernel>(&step.work);
    const DeviceFamily* family = find_family(plan_.target);
    if (!host || !family) return nullptr;
    StepRecord record;
    record.kernel = host->kernel;
    record.params = host->params;
    if (!host->program.empty()) record.program = &program;
    Result<std::unique_ptr<Kernel>> kernel = family->make_kernel(record);
    return kernel ? *std::move(kernel) : nullptr;
  }

  std::optional<size_t> prepared_workspace(size_t i) const {
    const plan::Step& step = plan_.steps[i];
    const auto* device = std::get_if<plan::DeviceLaunches>(&step.work);
    const std::optional<int64_t> launches = device ? largest(device->workspace) : 0;
    if (!launches) return std::nullopt;
    const auto least = static_cast<size_t>(*launches);
    Program program;
    std::unique_ptr<Kernel> made;
    if (!engine_.has_device()) {
      program = program_of(step);
      made = make_kernel(step, program);
    }
    const Kernel* kernel = engine_.has_device() ? engine_.code()[i].kernel.get() : made.get();
    if (!kernel) return least;
    std::vector<TensorArg> operands;
    for (const auto* ids : {&step.inputs, &step.outputs})
      for (const plan::TensorId id : *ids) {
        const std::optional<TensorArg> arg = operand(id);
        if (!arg) return std::nullopt;
        operands.push_back(*arg);
      }
    const std::span<const TensorArg> all(operands);
    const Operands arguments{all.first(step.inputs.size()), all.subspan(step.inputs.size()), largest_};
    // Dimensions that exclude each other may be refused; a run then finds out what it needs.
    const Result<size_t> asked = kernel->prepare(arguments, engine_.threads());
    return std::max(asked.value_or(0), least);
  }

  const Engine& engine_;
  const plan::Plan& plan_;
  size_t profile_;
  std::vector<Range> ranges_;
  std::vector<int64_t> largest_;
};

}  // namespace

const MemoryLimit* Engine::memory_limit(size_t profile) const {
  const std::lock_guard lock(limits_mutex_);
  limits_.resize(plan().profiles.size());
  std::unique_ptr<const std::optional<MemoryLimit>>& limit = limits_[profile];
  if (!limit) limit = std::make_unique<const std::optional<MemoryLimit>>(Limiter(*this, profile).find());
  return limit->has_value() ? &**limit : nullptr;
}

}  // namespace lathe
