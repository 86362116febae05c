// SPDX-License-Identifier: Apache-2.0
#include "plan/validate_steps.h"

#include <algorithm>
#include <cmath>

#include "device/program.h"
#include "plan/blocks.h"
#include "plan/limits.h"
#include "plan/validate_block.h"

namespace lathe::plan {
namespace {

template <class... Args>
tl::unexpected<Error> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::plan_malformed, format, std::forward<Args>(args)...);
}

// Which storages hold data, as steps are walked in order. What a body writes is forgotten at its end: it may not have
// run.
class Written {
 public:
  explicit Written(const Plan& plan)
      : buffers_(plan.buffers.size()), bindings_(plan.bindings.size()), slots_(plan.dynamic_slots) {
    for (size_t i = 0; i < bindings_.size(); ++i) bindings_[i] = plan.bindings[i].is_input;
  }

  bool has(const TensorDesc& t) const {
    const std::vector<bool>* flags = const_cast<Written*>(this)->flags_of(t);
    return !flags || (*flags)[t.index];
  }
  void add(const TensorDesc& t) {
    std::vector<bool>* flags = flags_of(t);
    if (!flags || (*flags)[t.index]) return;
    (*flags)[t.index] = true;
    added_.emplace_back(flags, t.index);
  }
  bool has_binding(size_t i) const { return bindings_[i]; }

  size_t mark() const { return added_.size(); }
  void forget_since(size_t mark) {
    for (; added_.size() > mark; added_.pop_back()) (*added_.back().first)[added_.back().second] = false;
  }

 private:
  std::vector<bool>* flags_of(const TensorDesc& t) {
    switch (t.storage) {
      case StorageKind::arena:
        return &buffers_;
      case StorageKind::binding:
        return &bindings_;
      case StorageKind::dynamic:
        return &slots_;
      case StorageKind::constant:
        break;
    }
    return nullptr;
  }

  std::vector<bool> buffers_, bindings_, slots_;
  std::vector<std::pair<std::vector<bool>*, uint32_t>> added_;
};

class StepsValidator {
 public:
  explicit StepsValidator(const Plan& plan) : plan_(plan), written_(plan) {}

  Result<> run() {
    LATHE_ASSIGN(places_, find_places(plan_.steps));
    LATHE_TRY(check_range(0, plan_.steps.size()));
    LATHE_TRY(check_sections());
    for (size_t i = 0; i < plan_.bindings.size(); ++i)
      if (!written_.has_binding(i)) return malformed("plan: no step writes output '{}'", plan_.bindings[i].name);
    return {};
  }

 private:
  // Steps [first, end) and those of their own.
  Result<> check_range(size_t first, size_t end) {
    for (size_t i = first; i < end; i = places_[i].end) {
      Result<> result = check_step(i);
      if (!result) return fail(with_context(std::move(result).error(), fmt::format("plan: step {}", i)));
      const auto* block = std::get_if<Block>(&plan_.steps[i].work);
      if (block) LATHE_TRY(check_bodies(i, *block));
    }
    return {};
  }

  Result<> check_bodies(size_t i, const Block& block) {
    const size_t before = written_.mark();
    size_t first = i + 1;
    if (block.kind == BlockKind::loop) loops_.push_back(i);
    for (const Body& body : block.bodies) {
      for (const TensorId id : body.params) {
        if (id == kNoTensor) continue;
        LATHE_TRY(check_repeatable(id));
        written_.add(plan_.tensors[id]);
      }
      LATHE_TRY(check_range(first, first + body.steps));
      first += body.steps;
      for (const TensorId id : body.results)
        if (id != kNoTensor && !written_.has(plan_.tensors[id]))
          return malformed("plan: step {}: its body leaves tensor {} ('{}'), which nothing has written", i, id,
                           plan_.tensors[id].name);
      written_.forget_since(before);
    }
    if (block.kind == BlockKind::loop) loops_.pop_back();
    for (const TensorId id : plan_.steps[i].outputs)
      if (id != kNoTensor) written_.add(plan_.tensors[id]);
    return {};
  }

  // Whether running tells the size of a result, so that the operation's shape rule may.
  bool makes_sizes(const Step& s) const {
    return std::any_of(s.outputs.begin(), s.outputs.end(), [&](TensorId id) {
      return id < plan_.tensors.size() && depends_on_data(plan_.tensors[id].dims, plan_.symbols);
    });
  }

  Result<> check_step(size_t i) {
    const Step& s = plan_.steps[i];
    if (s.inputs.size() + s.outputs.size() > kMaxOperands || s.origin.size() > kMaxEntries)
      return malformed("it has too many operands or origins");
    if (!(s.milliseconds >= 0) || std::isinf(s.milliseconds)) return malformed("its time is not a number");
    const bool runs_kernel = s.is<HostKernel>() || s.is<DeviceLaunches>();
    if (s.is<Evaluation>() || s.is<PluginCall>() ? s.op.empty() : !s.op.empty() && !(runs_kernel && makes_sizes(s)))
      return malformed("a {} with operation '{}'", s.kind(), s.op);
    for (const TensorId id : s.inputs) LATHE_TRY(check_input(i, id));
    for (const TensorId id : s.outputs) LATHE_TRY(check_output(i, id));
    if (s.counts.size() > kMaxOperands) return malformed("it reads {} sizes", s.counts.size());
    for (const StepCount& count : s.counts) LATHE_TRY(check_count(s, count));
    LATHE_TRY(std::visit([&](const auto& work) { return check_work(i, s, work); }, s.work));
    if (s.is<Block>()) return {};  // written when its bodies have been
    for (const TensorId id : s.outputs)
      if (id != kNoTensor) written_.add(plan_.tensors[id]);
    return {};
  }

  Result<> check_work(size_t, const Step& s, const HostKernel& host) {
    if (host.kernel.empty()) return malformed("it names no kernel");
    if (host.params.size() > kMaxOperands) return malformed("it has too many parameters");
    return check_program(s, host.program);
  }

  Result<> check_work(size_t, const Step& s, const DeviceLaunches& device) {
    if (device.kernel.empty()) return malformed("it names no kernel");
    if (device.launches.empty() || device.launches.size() > kMaxLaunches)
      return malformed("it has {} launches", device.launches.size());
    for (const Launch& launch : device.launches) LATHE_TRY(check_launch(s, launch));
    return check_program(s, device.program);
  }

  // Dimensions and types are compared when the step runs: the former may be known then only.
  Result<> check_work(size_t, const Step& s, const Copy&) {
    const auto is_one = [](const std::vector<TensorId>& ids) { return ids.size() == 1 && ids[0] != kNoTensor; };
    return is_one(s.inputs) && is_one(s.outputs) ? Result<>() : malformed("it copies other than one tensor to one");
  }

  Result<> check_work(size_t, const Step&, const Evaluation&) { return {}; }

  Result<> check_work(size_t, const Step& s, const PluginCall&) {
    return s.op == "plugin" ? Result<>() : malformed("it calls a plugin as operation '{}'", s.op);
  }

  // Steps that run beside each other know all sizes beforehand, and no other step names a stream.
  Result<> check_sections() const {
    size_t end = 0;  // of the last section
    for (const ParallelSection& section : plan_.sections) {
      if (section.first < end || section.end <= section.first || section.end > plan_.steps.size())
        return malformed("plan: a section of steps {} to {} behind step {} of {}", section.first, section.end, end,
                         plan_.steps.size());
      LATHE_TRY(check_alone(end, section.first));
      end = section.end;
      for (size_t i = section.first; i < end; ++i) {
        const Step& s = plan_.steps[i];
        if (!s.is<DeviceLaunches>() || !s.counts.empty() || !s.op.empty() || places_[i].depth > 0)
          return malformed("plan: step {}, of a section, is a {} that cannot run beside others", i, s.kind());
        if (s.stream > kMaxStreams)
          return malformed("plan: step {} runs on stream {}; the limit is {}", i, s.stream, kMaxStreams);
        if (s.stream > 0) LATHE_TRY(check_alive_in(section, i));
      }
    }
    return check_alone(end, plan_.steps.size());
  }

  Result<> check_alone(size_t first, size_t end) const {
    for (size_t i = first; i < end; ++i)
      if (plan_.steps[i].stream != 0) return malformed("plan: step {} names a stream outside of a section", i);
    return {};
  }

  // What auxiliary streams touch shares memory with nothing of the section.
  Result<> check_alive_in(const ParallelSection& section, size_t i) const {
    for (const auto* ids : {&plan_.steps[i].inputs, &plan_.steps[i].outputs})
      for (const TensorId id : *ids) {
        if (id == kNoTensor) continue;
        LATHE_TRY(check_alive(id, section.first));
        LATHE_TRY(check_alive(id, section.end - 1));
      }
    return {};
  }

  // Bodies' values and the block's operands live as long as the block runs.
  Result<> check_work(size_t i, const Step& s, const Block& block) {
    const auto check_all = [&](const std::vector<TensorId>& ids, const char* what) -> Result<> {
      if (ids.size() > kMaxOperands) return malformed("it has {} {}", ids.size(), what);
      for (const TensorId id : ids) {
        if (id == kNoTensor) continue;
        LATHE_TRY(check_exists(id));
        LATHE_TRY(check_alive(id, i));
        LATHE_TRY(check_alive(id, places_[i].end - 1));
      }
      return {};
    };
    for (const Body& body : block.bodies) {
      LATHE_TRY(check_all(body.params, "params"));
      LATHE_TRY(check_all(body.results, "results"));
      for (const TensorId id : body.params)
        if (id != kNoTensor) LATHE_TRY(check_writable(id));
    }
    LATHE_TRY(check_all(s.inputs, "inputs"));
    LATHE_TRY(check_all(s.outputs, "outputs"));
    return check_block(plan_, s, block);
  }

  // The element is checked when it is read: its place may depend on sizes.
  Result<> check_count(const Step& s, const StepCount& count) {
    if (count.symbol >= plan_.symbols.size() || plan_.symbols[count.symbol].source != SymbolSource::computed)
      return malformed("it reads symbol {}, which is none that running computes", count.symbol);
    if (s.is<PluginCall>()) return check_written_size(s, count);
    if (!(s.is<HostKernel>() || s.is<DeviceLaunches>()) || count.input >= s.inputs.size() ||
        s.inputs[count.input] == kNoTensor)
      return malformed("it reads a size from input {}, which does not exist", count.input);
    const TensorDesc& tensor = plan_.tensors[s.inputs[count.input]];
    if (tensor.dtype != DType::i64 || tensor.dims.size() != 1 || !tensor.strides.empty())
      return malformed("it reads a size from input {}, which is no dense list of int64", count.input);
    return {};
  }

  Result<> check_written_size(const Step& s, const StepCount& count) const {
    const TensorId id = count.input < s.outputs.size() ? s.outputs[count.input] : kNoTensor;
    if (id == kNoTensor) return malformed("it writes a size to output {}, which does not exist", count.input);
    const TensorDesc& tensor = plan_.tensors[id];
    if ((tensor.dtype != DType::i64 && tensor.dtype != DType::i32) || !tensor.dims.empty())
      return malformed("it writes a size to output {}, which is no integer by itself", count.input);
    return {};
  }

  // What devices limit further (grid, threads, shared memory), they check.
  Result<> check_launch(const Step& s, const Launch& launch) {
    const bool calls = !launch.library.empty();
    if (calls ? launch.code != 0 : launch.code >= plan_.codes.size())
      return malformed("it runs code module {} of {}", launch.code, calls ? 0 : plan_.codes.size());
    if (launch.entry.empty() || launch.entry.find('\0') != std::string::npos) return malformed("a launch has no entry");
    if (launch.block == 0 || launch.cluster == 0) return malformed("a launch has no threads");
    if (launch.args.size() > kMaxLaunchArgs) return malformed("a launch has {} arguments", launch.args.size());
    for (const LaunchArg& arg : launch.args)
      if (arg.kind > LaunchArg::tensor_map || (arg.kind == LaunchArg::input && arg.index >= s.inputs.size()) ||
          (arg.kind == LaunchArg::output && arg.index >= s.outputs.size()) ||
          (arg.kind == LaunchArg::tensor_map && (calls || arg.index >= launch.maps.size())))
        return malformed("a launch's argument refers to nothing");
    constexpr size_t kWindowBox = 2;  // channels and pixels
    if (launch.maps.size() > kMaxTensorMaps) return malformed("a launch has {} tensor maps", launch.maps.size());
    for (const TensorMap& map : launch.maps)
      if (map.input >= s.inputs.size() || map.dims.empty() || map.dims.size() > kMaxMapRank ||
          map.strides.size() + 1 != map.dims.size() ||
          map.box.size() != (map.windows.empty() ? map.dims.size() : kWindowBox))
        return malformed("a tensor map of a launch describes nothing");
    return {};
  }

  Result<> check_exists(TensorId id) const {
    return id < plan_.tensors.size() ? Result<>() : malformed("tensor {} does not exist", id);
  }

  Result<> check_alive(TensorId id, size_t step) const {
    const TensorDesc& t = plan_.tensors[id];
    if (t.storage != StorageKind::arena) return {};
    const Buffer& b = plan_.buffers[t.index];
    if (step >= b.first && step <= b.last) return {};
    return malformed("tensor {} is in buffer {}, which lives from step {} to {}, not at step {}", id, t.index, b.first,
                     b.last, step);
  }

  // A buffer from before a loop must outlive it: the next round may want it again.
  Result<> check_operand(size_t step, TensorId id) const {
    LATHE_TRY(check_exists(id));
    const Step& s = plan_.steps[step];
    if (plan_.tensors[id].kind != ValueKind::tensor && !s.is<Evaluation>() && !s.is<Block>())
      return malformed("tensor {} ('{}') is a sequence or an optional, which a {} cannot take", id,
                       plan_.tensors[id].name, s.kind());
    LATHE_TRY(check_alive(id, step));
    if (plan_.tensors[id].storage != StorageKind::arena) return {};
    for (const size_t loop : loops_)
      if (plan_.buffers[plan_.tensors[id].index].first < loop) LATHE_TRY(check_alive(id, places_[loop].end - 1));
    return {};
  }

  Result<> check_input(size_t step, TensorId id) const {
    if (id == kNoTensor) return {};
    LATHE_TRY(check_operand(step, id));
    const TensorDesc& t = plan_.tensors[id];
    return written_.has(t) ? Result<>()
                           : malformed("it reads tensor {} ('{}') before anything has written it", id, t.name);
  }

  Result<> check_writable(TensorId id) const {
    const TensorDesc& t = plan_.tensors[id];
    if (t.storage == StorageKind::constant || (t.storage == StorageKind::binding && plan_.bindings[t.index].is_input))
      return malformed("it writes tensor {}, which is an input or a constant", id);
    return {};
  }

  // The application gives memory for an output once, and each round of a loop may find another size.
  Result<> check_repeatable(TensorId id) const {
    const TensorDesc& t = plan_.tensors[id];
    if (loops_.empty() || t.storage != StorageKind::binding) return {};
    if (!depends_on_data(plan_.tensors[plan_.bindings[t.index].tensor].dims, plan_.symbols)) return {};
    return malformed("a loop writes tensor {} ('{}'), an output whose size only running tells", id, t.name);
  }

  Result<> check_output(size_t step, TensorId id) const {
    if (id == kNoTensor) return {};
    LATHE_TRY(check_operand(step, id));
    LATHE_TRY(check_repeatable(id));
    return check_writable(id);
  }

  // As an epilogue the program's first input is the accumulator, which is no operand.
  Result<> check_program(const Step& s, const std::string& text) const {
    if (text.empty()) return {};
    LATHE_ASSIGN(const Program program, parse_program(text));
    if (program.num_inputs > s.inputs.size() + 1 || program.outputs.size() > s.outputs.size())
      return malformed("its program takes {} inputs and {} outputs, the step has {} and {}", program.num_inputs,
                       program.outputs.size(), s.inputs.size(), s.outputs.size());
    return {};
  }

  const Plan& plan_;
  Written written_;
  std::vector<StepPlace> places_;
  std::vector<size_t> loops_;  // around the step that is being checked
};

}  // namespace

Result<> validate_steps(const Plan& plan) { return StepsValidator(plan).run(); }

}  // namespace lathe::plan
