// SPDX-License-Identifier: Apache-2.0
#include "plan/validate.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "device/program.h"
#include "plan/limits.h"
#include "plan/windows.h"

namespace lathe::plan {
namespace {

template <class... Args>
tl::unexpected<Error> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::plan_malformed, format, std::forward<Args>(args)...);
}

class Validator {
 public:
  explicit Validator(const Plan& plan) : plan_(plan) {}

  Result<> run() {
    LATHE_TRY(check_limits());
    LATHE_TRY(check_constants());
    LATHE_TRY(check_buffers());
    LATHE_TRY(check_bindings());
    LATHE_TRY(each(plan_.tensors, "tensor", &Validator::check_tensor));
    LATHE_TRY(each(plan_.symbols, "symbol", &Validator::check_symbol));
    LATHE_TRY(each(plan_.constraints, "constraint", &Validator::check_constraint));
    LATHE_TRY(check_binding_dims());
    LATHE_TRY(check_profiles());
    LATHE_TRY(check_steps());
    return check_window_proofs(plan_, profile_hull());
  }

 private:
  template <class T>
  Result<> each(const std::vector<T>& list, const char* what, Result<> (Validator::*check)(size_t, const T&)) {
    for (size_t i = 0; i < list.size(); ++i) {
      Result<> result = (this->*check)(i, list[i]);
      if (!result) return fail(with_context(std::move(result).error(), fmt::format("plan: {} {}", what, i)));
    }
    return {};
  }

  Result<> check_limits() {
    if (plan_.target.size() > kMaxTarget || plan_.target.find('\0') != std::string::npos)
      return malformed("plan: the target's name is longer than {} bytes or holds a zero", kMaxTarget);
    for (const size_t count :
         {plan_.symbols.size(), plan_.profiles.size(), plan_.tensors.size(), plan_.buffers.size(),
          plan_.constants.size(), plan_.codes.size(), plan_.constraints.size(), plan_.bindings.size(),
          plan_.steps.size(), plan_.metadata.size(), size_t{plan_.dynamic_slots}})
      if (count > kMaxEntries) return malformed("plan: a list has {} entries; the limit is {}", count, kMaxEntries);
    LATHE_TRY(check_string(plan_.name, "the network's name"));
    for (const auto& [key, value] : plan_.metadata) {
      LATHE_TRY(check_string(key, "a metadata key"));
      LATHE_TRY(check_string(value, "a metadata value"));
    }
    return {};
  }

  static Result<> check_string(const std::string& text, const char* what) {
    if (text.size() > kMaxString) return malformed("{} has {} bytes; the limit is {}", what, text.size(), kMaxString);
    return {};
  }

  Result<> check_constants() {
    for (const Constant& c : plan_.constants) {
      if (c.offset % kConstantAlignment != 0)
        return malformed("plan: a constant is not {}-byte aligned", kConstantAlignment);
      if (c.offset > plan_.weights.size() || c.bytes > plan_.weights.size() - c.offset)
        return malformed("plan: constant at {} with {} bytes lies outside the weights ({} bytes)", c.offset, c.bytes,
                         plan_.weights.size());
    }
    return {};
  }

  enum class Symbols { any, known_before_running };

  Result<> check_expr(const Expr& e, Symbols allowed, const char* what) {
    if (!e.is_valid()) return malformed("{} is an invalid expression", what);
    if (e.is_constant()) return {};
    scratch_.clear();
    e.collect_symbols(scratch_);
    for (const SymbolId id : scratch_) {
      if (id >= plan_.symbols.size()) return malformed("{} uses symbol {} of {}", what, id, plan_.symbols.size());
      if (allowed == Symbols::known_before_running && plan_.symbols[id].source == SymbolSource::computed)
        return malformed("{} uses symbol {}, which is computed while running", what, id);
    }
    return {};
  }

  Result<> check_buffers() {
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Buffer& b = plan_.buffers[i];
      LATHE_TRY(check_expr(b.bytes, Symbols::known_before_running, "a buffer's size"));
      if (const auto bytes = b.bytes.as_constant(); bytes && *bytes < 0)
        return malformed("plan: buffer {} has a negative size", i);
      if (b.first > b.last || b.last >= plan_.steps.size())
        return malformed("plan: buffer {} lives from step {} to {} of {}", i, b.first, b.last, plan_.steps.size());
    }
    return {};
  }

  Result<> check_bindings() {
    std::unordered_set<std::string_view> names;
    bool outputs_began = false;
    for (size_t i = 0; i < plan_.bindings.size(); ++i) {
      const Binding& b = plan_.bindings[i];
      LATHE_TRY(check_string(b.name, "a binding's name"));
      if (b.name.empty() || b.name.find('\0') != std::string::npos)
        return malformed("plan: binding {} has no usable name", i);
      if (!names.insert(b.name).second) return malformed("plan: two bindings are named '{}'", b.name);
      if (b.is_input && outputs_began) return malformed("plan: input '{}' comes after an output", b.name);
      outputs_began |= !b.is_input;
      if (b.tensor >= plan_.tensors.size())
        return malformed("plan: binding '{}' refers to tensor {}", b.name, b.tensor);
      const Tensor& t = plan_.tensors[b.tensor];
      if (t.storage != StorageKind::binding || t.index != i || !(t.offset == Expr(0)))
        return malformed("plan: the tensor of binding '{}' is not the binding itself", b.name);
      if (!b.dim_names.empty() && b.dim_names.size() != t.dims.size())
        return malformed("plan: binding '{}' has {} dimension names for {} dimensions", b.name, b.dim_names.size(),
                         t.dims.size());
      for (const std::string& name : b.dim_names) LATHE_TRY(check_string(name, "a dimension's name"));
    }
    return {};
  }

  Result<> check_tensor(size_t, const Tensor& t) {
    LATHE_TRY(check_string(t.name, "its name"));
    if (!dtype_from_number(static_cast<int>(t.dtype))) return malformed("unknown element type");
    if (t.dims.size() > kMaxRank) return malformed("rank {} exceeds {}", t.dims.size(), kMaxRank);
    if (!t.strides.empty() && t.strides.size() != t.dims.size())
      return malformed("{} strides for {} dimensions", t.strides.size(), t.dims.size());
    size_t storages = 0;
    switch (t.storage) {
      case StorageKind::arena:
        storages = plan_.buffers.size();
        break;
      case StorageKind::constant:
        storages = plan_.constants.size();
        break;
      case StorageKind::binding:
        storages = plan_.bindings.size();
        break;
      case StorageKind::dynamic:
        storages = plan_.dynamic_slots;
        break;
    }
    if (t.index >= storages) return malformed("storage {} of {} does not exist", t.index, storages);
    for (const Expr& e : t.dims) LATHE_TRY(check_expr(e, Symbols::any, "a dimension"));
    for (const Expr& e : t.strides) LATHE_TRY(check_expr(e, Symbols::any, "a stride"));
    return check_expr(t.offset, Symbols::any, "the offset");
  }

  Result<> check_symbol(size_t i, const Symbol& s) {
    LATHE_TRY(check_string(s.name, "its name"));
    if (s.range.min > s.range.max) return malformed("its range {} .. {} is empty", s.range.min, s.range.max);
    if (s.source == SymbolSource::computed) return {};
    if (s.tensor >= plan_.bindings.size() || !plan_.bindings[s.tensor].is_input)
      return malformed("its source is input {}, which does not exist", s.tensor);
    const Binding& b = plan_.bindings[s.tensor];
    const Tensor& t = plan_.tensors[b.tensor];
    if (s.source == SymbolSource::input_dim) {
      if (s.range.min < 0) return malformed("a dimension may not be negative");
      if (s.index >= t.dims.size() || t.dims[s.index].as_symbol() != static_cast<SymbolId>(i))
        return malformed("dimension {} of input '{}' is not this symbol", s.index, b.name);
      return {};
    }
    if (!b.is_shape_tensor) return malformed("input '{}' is not a shape tensor", b.name);
    const auto dims = as_constant(t.dims);
    int64_t count = 1;
    bool fits = dims.has_value();
    for (size_t d = 0; fits && d < dims->size(); ++d)
      fits = (*dims)[d] >= 0 && !__builtin_mul_overflow(count, (*dims)[d], &count);
    if (!fits || s.index >= count) return malformed("shape tensor '{}' has no element {}", b.name, s.index);
    return {};
  }

  Result<> check_constraint(size_t, const Constraint& c) {
    LATHE_TRY(check_string(c.where, "its place"));
    LATHE_TRY(check_expr(c.a, Symbols::any, "its left side"));
    return check_expr(c.b, Symbols::any, "its right side");
  }

  Result<> check_binding_dims() {
    for (const Binding& b : plan_.bindings)
      if (b.is_input)
        for (const Expr& e : plan_.tensors[b.tensor].dims)
          LATHE_TRY(check_expr(e, Symbols::known_before_running, "an input's dimension"));
    return {};
  }

  Result<> check_profiles() {
    if (plan_.profiles.empty()) return malformed("plan: it has no optimization profile");
    for (const Profile& profile : plan_.profiles) {
      if (profile.symbols.size() != plan_.symbols.size())
        return malformed("plan: a profile covers {} symbols of {}", profile.symbols.size(), plan_.symbols.size());
      for (size_t i = 0; i < profile.symbols.size(); ++i) {
        const SymbolProfile& p = profile.symbols[i];
        const Range& range = plan_.symbols[i].range;
        if (p.min > p.opt || p.opt > p.max || p.min < range.min || p.max > range.max)
          return malformed("plan: a profile gives symbol {} the values {} / {} / {}, its range is {} .. {}", i, p.min,
                           p.opt, p.max, range.min, range.max);
      }
    }
    return {};
  }

  // For each symbol, all values that some profile allows.
  std::vector<Range> profile_hull() const {
    std::vector<Range> hull(plan_.symbols.size());
    for (size_t i = 0; i < hull.size(); ++i) {
      hull[i] = {plan_.profiles[0].symbols[i].min, plan_.profiles[0].symbols[i].max};
      for (const Profile& p : plan_.profiles)
        hull[i] = {std::min(hull[i].min, p.symbols[i].min), std::max(hull[i].max, p.symbols[i].max)};
    }
    return hull;
  }

  // Which storages hold data, as steps are walked in order.
  std::vector<bool>* written(const Tensor& t) {
    switch (t.storage) {
      case StorageKind::arena:
        return &written_buffers_;
      case StorageKind::binding:
        return &written_bindings_;
      case StorageKind::dynamic:
        return &written_slots_;
      case StorageKind::constant:
        break;
    }
    return nullptr;
  }

  Result<> check_steps() {
    written_buffers_.resize(plan_.buffers.size());
    written_slots_.resize(plan_.dynamic_slots);
    for (const Binding& b : plan_.bindings) written_bindings_.push_back(b.is_input);
    LATHE_TRY(each(plan_.steps, "step", &Validator::check_step));
    for (size_t i = 0; i < plan_.bindings.size(); ++i)
      if (!written_bindings_[i]) return malformed("plan: no step writes output '{}'", plan_.bindings[i].name);
    return {};
  }

  // Whether running tells the size of a result, so that the operation's shape rule may.
  bool makes_sizes(const Step& s) const {
    return std::any_of(s.outputs.begin(), s.outputs.end(), [&](TensorId id) {
      return id < plan_.tensors.size() && depends_on_data(plan_.tensors[id].dims, plan_.symbols);
    });
  }

  Result<> check_step(size_t i, const Step& s) {
    for (const std::string* text : {&s.kernel, &s.program, &s.op, &s.attributes, &s.name, &s.tactic})
      LATHE_TRY(check_string(*text, "a string"));
    for (const std::string& text : s.origin) LATHE_TRY(check_string(text, "an origin"));
    if (s.kernel.empty()) return malformed("it names no kernel");
    if (s.kernel == "eval" ? s.op.empty() : !s.op.empty() && !makes_sizes(s))
      return malformed("kernel '{}' with operation '{}'", s.kernel, s.op);
    if (s.inputs.size() + s.outputs.size() > kMaxOperands || s.params.size() > kMaxOperands ||
        s.origin.size() > kMaxEntries)
      return malformed("it has too many operands, parameters or origins");
    if (!(s.milliseconds >= 0) || std::isinf(s.milliseconds)) return malformed("its time is not a number");
    for (const TensorId id : s.inputs) LATHE_TRY(check_operand(i, id, /*writes=*/false));
    for (const TensorId id : s.outputs) LATHE_TRY(check_operand(i, id, /*writes=*/true));
    if (s.launches.empty() && !(s.workspace == Expr(0))) return malformed("it has a workspace and launches nothing");
    if (s.launches.size() > kMaxLaunches || (s.kernel == "eval" && !s.launches.empty()))
      return malformed("it has {} launches", s.launches.size());
    LATHE_TRY(check_expr(s.workspace, Symbols::any, "its workspace"));
    if (s.counts.size() > kMaxOperands) return malformed("it reads {} sizes", s.counts.size());
    for (const StepCount& count : s.counts) LATHE_TRY(check_count(s, count));
    for (const Launch& launch : s.launches) LATHE_TRY(check_launch(s, launch));
    return check_program(s);
  }

  // The element is checked when it is read: its place may depend on sizes.
  Result<> check_count(const Step& s, const StepCount& count) {
    if (count.symbol >= plan_.symbols.size() || plan_.symbols[count.symbol].source != SymbolSource::computed)
      return malformed("it reads symbol {}, which is none that running computes", count.symbol);
    if (s.kernel == "eval" || count.input >= s.inputs.size() || s.inputs[count.input] == kNoTensor)
      return malformed("it reads a size from input {}, which does not exist", count.input);
    const Tensor& tensor = plan_.tensors[s.inputs[count.input]];
    if (tensor.dtype != DType::i64 || tensor.dims.size() != 1 || !tensor.strides.empty())
      return malformed("it reads a size from input {}, which is no dense list of int64", count.input);
    return check_expr(count.element, Symbols::any, "the place of a size");
  }

  // What devices limit further (grid, threads, shared memory), they check.
  Result<> check_launch(const Step& s, const Launch& launch) {
    LATHE_TRY(check_string(launch.entry, "an entry's name"));
    LATHE_TRY(check_string(launch.library, "a library's name"));
    const bool calls = !launch.library.empty();
    if (calls ? launch.code != 0 : launch.code >= plan_.codes.size())
      return malformed("it runs code module {} of {}", launch.code, calls ? 0 : plan_.codes.size());
    if (launch.entry.empty() || launch.entry.find('\0') != std::string::npos) return malformed("a launch has no entry");
    if (launch.block == 0 || launch.cluster == 0) return malformed("a launch has no threads");
    if (launch.args.size() > kMaxLaunchArgs) return malformed("a launch has {} arguments", launch.args.size());
    for (const Expr& e : launch.grid) LATHE_TRY(check_expr(e, Symbols::any, "a launch's grid"));
    for (const LaunchArg& arg : launch.args) {
      LATHE_TRY(check_expr(arg.value, Symbols::any, "a launch's argument"));
      if (arg.kind > LaunchArg::number || (arg.kind == LaunchArg::input && arg.index >= s.inputs.size()) ||
          (arg.kind == LaunchArg::output && arg.index >= s.outputs.size()))
        return malformed("a launch's argument refers to nothing");
    }
    return {};
  }

  Result<> check_operand(size_t step, TensorId id, bool writes) {
    if (id == kNoTensor) return {};
    if (id >= plan_.tensors.size()) return malformed("tensor {} does not exist", id);
    const Tensor& t = plan_.tensors[id];
    if (t.storage == StorageKind::arena) {
      const Buffer& b = plan_.buffers[t.index];
      if (step < b.first || step > b.last)
        return malformed("tensor {} is in buffer {}, which lives from step {} to {}", id, t.index, b.first, b.last);
    }
    if (writes &&
        (t.storage == StorageKind::constant || (t.storage == StorageKind::binding && plan_.bindings[t.index].is_input)))
      return malformed("it writes tensor {}, which is an input or a constant", id);
    std::vector<bool>* flags = written(t);
    if (!flags) return {};
    if (writes)
      (*flags)[t.index] = true;
    else if (!(*flags)[t.index])
      return malformed("it reads tensor {} ('{}') before anything has written it", id, t.name);
    return {};
  }

  // As an epilogue the program's first input is the accumulator, which is no operand.
  Result<> check_program(const Step& s) {
    if (s.program.empty()) return {};
    LATHE_ASSIGN(const Program program, parse_program(s.program));
    if (program.num_inputs > s.inputs.size() + 1 || program.outputs.size() > s.outputs.size())
      return malformed("its program takes {} inputs and {} outputs, the step has {} and {}", program.num_inputs,
                       program.outputs.size(), s.inputs.size(), s.outputs.size());
    return {};
  }

  const Plan& plan_;
  std::vector<bool> written_buffers_, written_bindings_, written_slots_;
  std::vector<SymbolId> scratch_;
};

}  // namespace

Result<> validate(const Plan& plan) { return Validator(plan).run(); }

}  // namespace lathe::plan
